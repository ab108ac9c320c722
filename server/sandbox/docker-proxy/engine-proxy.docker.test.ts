import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type Server } from 'node:http'
import { join } from 'node:path'
import Dockerode from 'dockerode'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { discard, startCore, type TestCore, temporaryFolder } from '../../../tests/fixtures/core.ts'
import { silentLogger } from '../../lib/logger.ts'
import { containerSpec } from '../docker/container-spec.ts'
import { createDockerEngine } from '../docker/docker-engine.ts'
import { readImageAssets } from '../docker/image-assets.ts'
import { createImageBuilder } from '../docker/image-builder.ts'
import { createEngineProxy } from './engine-proxy.ts'

const limits = { memoryMb: 128, cpus: 0.5, pids: 64, workspaceMb: 16, network: 'none' }
const dir = temporaryFolder()
const socketPath = join(dir, 'docker.sock')
const docker = new Dockerode({ socketPath })
const direct = new Dockerode()
let proxy: Server
let core: TestCore

beforeAll(async () => {
  proxy = createEngineProxy({ engineSocket: '/var/run/docker.sock', networks: [], logger: silentLogger })
  proxy.listen(socketPath)
  await once(proxy, 'listening')
  core = await startCore({}, { engine: createDockerEngine({ limits, logger: silentLogger, docker }) })
})

afterAll(async () => {
  await core.stop()
  discard(core.dataDir)
  proxy.close()
  proxy.closeAllConnections()
  discard(dir)
})

it('sessions work through it as they do without: start, call, pause, end', async () => {
  const id = `test-${randomUUID()}`
  expect(await core.sh(id, 'echo through; id -u')).toContain('through\n10001')
  const [container = ''] = await core.containers()
  await core.engine.pause(container)
  await core.engine.unpause(container)
  expect(await core.sh(id, 'head -c 3000000 /dev/zero | wc -c')).toContain('3000000')
})

// Checked with the defence off: no look at the fields → the container is made.
it('refuses what would be root on the host, and leaves nothing behind', async () => {
  const image = (await core.engine.ensureImage()) ?? ''
  const owner = { deployment: 'attack', instance: 'attack' }
  const spec = containerSpec({ limits, owner, image, createdAt: Date.now() })
  const privileged = { ...spec, HostConfig: { ...spec.HostConfig, Privileged: true } }
  const mounted = { ...spec, HostConfig: { ...spec.HostConfig, Binds: ['/:/host'] } }
  for (const body of [privileged, mounted]) {
    await expect(docker.createContainer(body)).rejects.toMatchObject({ statusCode: 403 })
  }
  await expect(docker.listContainers({ all: true })).rejects.toMatchObject({ statusCode: 403 })
  await expect(docker.createNetwork({ Name: 'attack' })).rejects.toMatchObject({ statusCode: 403 })
  const label = ['mcp-orchestrator.deployment=attack']
  expect(await direct.listContainers({ all: true, filters: { label } })).toEqual([])
})

// Checked with the defence off: any version and any body → the container runs with the host's disk in it.
it('starts nothing with a mount, in the way that old versions of the API have for it', async () => {
  const image = (await core.engine.ensureImage()) ?? ''
  const owner = { deployment: 'attack', instance: 'attack' }
  const made = await docker.createContainer(containerSpec({ limits, owner, image, createdAt: Date.now() }))
  try {
    const answers: number[] = []
    for (const version of ['/v1.23', '/v1.41', '']) {
      const path = `${version}/containers/${made.id}/start`
      const asked = httpRequest({ socketPath, method: 'POST', path, headers: { 'content-type': 'application/json' } })
      asked.end('{"Binds":["/:/host"]}')
      const [answer] = await once(asked, 'response')
      answer.resume()
      answers.push(answer.statusCode)
    }
    const { State, Mounts } = await direct.getContainer(made.id).inspect()
    expect({ running: State.Running, Mounts, answers }).toEqual({
      running: false,
      Mounts: [],
      answers: [403, 403, 403]
    })
  } finally {
    await direct.getContainer(made.id).remove({ force: true })
  }
})

// Checked with the defence off: no look at the label → the container is shown.
it('touches no container that is not ours', async () => {
  const image = (await core.engine.ensureImage()) ?? ''
  const foreign = await direct.createContainer({
    Image: image,
    Entrypoint: ['/bin/sleep', '60'],
    HostConfig: { NetworkMode: 'none' }
  })
  try {
    await foreign.start()
    const seen = docker.getContainer(foreign.id)
    await expect(seen.inspect()).rejects.toMatchObject({ statusCode: 403 })
    await expect(seen.exec({ Cmd: ['id'] })).rejects.toMatchObject({ statusCode: 403 })
    await expect(seen.remove({ force: true })).rejects.toMatchObject({ statusCode: 403 })
    const exec = await foreign.exec({ Cmd: ['/bin/sleep', '1'], AttachStdout: true })
    await expect(docker.getExec(exec.id).start({ hijack: true, stdin: true })).rejects.toThrow()
    expect((await foreign.inspect()).State.Running).toBe(true)
  } finally {
    await foreign.remove({ force: true })
  }
})

it('lets no image be made, and the orchestrator says where to make it', async () => {
  const assets = async () => ({ ...(await readImageAssets()), server: Buffer.from(dir) })
  const newer = createImageBuilder(docker, { logger: silentLogger, assets })
  const missing = { code: 'sandbox_image_missing', message: expect.stringMatching(/no build through.*npm run setup/) }
  await expect(newer.ensure()).rejects.toMatchObject(missing)
  const nowhere = async () => ({ ...(await assets()), packages: Buffer.from(dir) })
  await expect(createImageBuilder(docker, { logger: silentLogger, assets: nowhere }).ensure()).rejects.toMatchObject(
    missing
  )
  const own = createImageBuilder(docker, { logger: silentLogger, image: 'registry.invalid/own:1' })
  await expect(own.ensure()).rejects.toMatchObject(missing)
})
