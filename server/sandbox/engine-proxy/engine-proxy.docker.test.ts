import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type Server } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import Dockerode from 'dockerode'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startCore, type TestCore } from '../../../tests/support/start-core.ts'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { createDockerEngine } from '../docker/docker-engine.ts'
import { containerSpec } from '../docker/engine/container-spec.ts'
import { readImageAssets } from '../docker/image/image-assets.ts'
import { createImageBuilder } from '../docker/image/image-builder.ts'
import { createEngineProxy } from './engine-proxy.ts'

const limits = { memoryMb: 128, cpus: 0.5, pids: 64, workspaceMb: 16, network: 'none' }
const dir = temporaryFolder()
const socketPath = join(dir, 'docker.sock')
const docker = new Dockerode({ socketPath })
const direct = new Dockerode()
const attack = `attack-${randomUUID()}`
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

interface Creation {
  by?: Dockerode
  name?: string
  body: Dockerode.ContainerCreateOptions
}

/** Told apart like this, dockerode does not put the whole body into the address as well. */
function create({ by = docker, name, body }: Creation): Promise<Dockerode.Container> {
  const request = { _query: name === undefined ? {} : { name }, _body: body, abortSignal: AbortSignal.timeout(30_000) }
  return by.createContainer(request)
}

it('sessions work through it as they do without it: start, call, pause, end', async () => {
  const id = `test-${randomUUID()}`
  expect(await core.sh(id, 'echo through; id -u')).toMatch(/through\n20\d{3}/)
  const [container = ''] = await core.containers()
  await core.engine.pause?.(container)
  await core.engine.unpause?.(container)
  expect(await core.sh(id, 'head -c 3000000 /dev/zero | wc -c')).toContain('3000000')
})

// Checked: if the fields are not checked, the container is created.
it('refuses a container that would be root on the host, and leaves nothing behind', async () => {
  const image = (await core.engine.ensureImage()) ?? ''
  const owner = { deployment: attack, instance: attack }
  const spec = containerSpec({ limits, owner, image, createdAt: Date.now(), uid: 20_000 })
  const privileged = { ...spec, HostConfig: { ...spec.HostConfig, Privileged: true } }
  const mounted = { ...spec, HostConfig: { ...spec.HostConfig, Binds: ['/:/host'] } }
  const labelled = { ...spec, Labels: { ...spec.Labels, 'traefik.enable': 'true' } }
  for (const body of [privileged, mounted, labelled, { ...spec, Image: 'mcp-orchestrator-base' }]) {
    await expect(create({ body })).rejects.toMatchObject({ statusCode: expect.toBeOneOf([403, 404]) })
  }
  await expect(docker.listContainers({ all: true })).rejects.toMatchObject({ statusCode: 403 })
  await expect(docker.createNetwork({ Name: 'attack' })).rejects.toMatchObject({ statusCode: 403 })
  const label = [`mcp-orchestrator.deployment=${attack}`]
  expect(await direct.listContainers({ all: true, filters: { label } })).toEqual([])
})

// Checked: if any version and body are accepted, the container runs with the host's disk in it.
it('starts no container with a mount in the body, as old versions of the API allow', async () => {
  const image = (await core.engine.ensureImage()) ?? ''
  const owner = { deployment: attack, instance: attack }
  const made = await create({ body: containerSpec({ limits, owner, image, createdAt: Date.now(), uid: 20_000 }) })
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
      Mounts: [expect.objectContaining({ Destination: '/dev/pts' })],
      answers: [403, 403, 403]
    })
  } finally {
    await direct.getContainer(made.id).remove({ force: true, v: true })
  }
})

it('shows of an image what a sandbox needs to know, and nothing of its environment', async () => {
  const image = (await core.engine.ensureImage()) ?? ''
  const { Id, Config } = await direct.getImage(image).inspect()
  const seen = await docker.getImage(image).inspect()
  expect(seen).toMatchObject({ Id, Config: { Labels: Config.Labels } })
  expect(JSON.stringify(seen)).not.toMatch(/Env|History|PATH=/)
  await expect(docker.getImage('none-such').inspect()).rejects.toMatchObject({ statusCode: 404 })
})

// Checked: if the label is not checked, the container is shown.
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
    await expect(seen.remove({ force: true, v: true })).rejects.toMatchObject({ statusCode: 403 })
    const exec = await foreign.exec({ Cmd: ['/bin/sleep', '1'], AttachStdout: true })
    await expect(docker.getExec(exec.id).start({ hijack: true, stdin: true })).rejects.toThrow()
    expect((await foreign.inspect()).State.Running).toBe(true)
  } finally {
    await foreign.remove({ force: true, v: true })
  }
})

/** A container of somebody else, and one of ours whose name is the beginning of the other's id. */
async function withLookalike(
  use: (foreign: Dockerode.Container, ours: Dockerode.Container, name: string) => Promise<void>
) {
  const image = (await core.engine.ensureImage()) ?? ''
  const sleeper = { Image: image, Entrypoint: ['/bin/sleep', '600'], HostConfig: { NetworkMode: 'none' } }
  const foreign = await direct.createContainer(sleeper)
  const name = foreign.id.slice(0, 12)
  const owner = { deployment: attack, instance: attack }
  // As one from before the upgrade: the proxy makes none with such a name any more.
  const body = containerSpec({ limits, owner, image, createdAt: Date.now(), uid: 20_000 })
  const ours = await create({ by: direct, name, body })
  try {
    await use(foreign, ours, name)
  } finally {
    await foreign.remove({ force: true, v: true }).catch(() => {})
    await ours.remove({ force: true, v: true }).catch(() => {})
  }
}

// Checked: if the name is checked before the body has arrived and then sent on, the other container runs the command and is
// removed.
it.each([
  ['POST', 'exec', JSON.stringify({ Cmd: ['id'] })],
  ['POST', 'start', ''],
  ['GET', 'json', ''],
  ['DELETE', '', '']
])(
  'acts on the container that was checked, even if its name means another one by then (%s %s)',
  async (method, verb, text) => {
    await withLookalike(async (foreign, ours, name) => {
      if (verb === 'exec') await foreign.start()
      const path = `/containers/${name}${verb && `/${verb}`}${method === 'DELETE' ? '?force=true' : ''}`
      // In chunks, so that a body without a byte can be late too.
      const request = httpRequest({ socketPath, method, path, headers: { 'transfer-encoding': 'chunked' } })
      request.flushHeaders()
      // Whatever the proxy does with a request whose body it has not seen yet, it has done by the time it answers another one.
      for (let i = 0; i < 5; i++) await docker.ping()
      await ours.remove({ force: true, v: true })
      request.end(text)
      const [answer] = await once(request, 'response')
      answer.resume()
      expect(answer.statusCode).toBe(403)
      const { State, ExecIDs } = await foreign.inspect()
      expect({ running: State.Running, ExecIDs }).toEqual({ running: verb === 'exec', ExecIDs: null })
    })
  }
)

// Checked: if the name is sent on, the stream is the other container's.
it('joins no stream of another container that has the name only when the body has arrived', async () => {
  await withLookalike(async (foreign, ours, name) => {
    await foreign.start()
    const socket = connect(socketPath)
    const upgrade = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 2\r\n\r\n'
    socket.write(`POST /containers/${name}/attach?stream=1&stdout=1 HTTP/1.1\r\n${upgrade}`)
    for (let i = 0; i < 5; i++) await docker.ping()
    await ours.remove({ force: true, v: true })
    socket.write('{}')
    const [answer] = await once(socket, 'data')
    socket.destroy()
    expect(String(answer)).toMatch(/^HTTP\/1.1 403 /)
  })
})

// Checked: if any name is accepted, the container is created under the other's id.
it('creates no container whose name could be an id, and answers itself for missing containers', async () => {
  const image = (await core.engine.ensureImage()) ?? ''
  const owner = { deployment: attack, instance: attack }
  const body = containerSpec({ limits, owner, image, createdAt: Date.now(), uid: 20_000 })
  for (const name of ['deadbeef0123', 'DEADBEEF', '0', 'f'.repeat(64), 'postgres']) {
    await expect(create({ name, body })).rejects.toMatchObject({ statusCode: 403 })
  }
  const missing = docker.getContainer('mcp-sandbox-none')
  await expect(missing.inspect()).rejects.toMatchObject({ statusCode: 404, message: /No such container/ })
  await expect(missing.exec({ Cmd: ['id'] })).rejects.toMatchObject({ statusCode: 404 })
  await expect(docker.getExec('0'.repeat(64)).start({ hijack: true, stdin: true })).rejects.toMatchObject({
    statusCode: 404
  })
})

it('lets no image be made, and the orchestrator says where to make it', async () => {
  const assets = async () => ({ ...(await readImageAssets()), server: Buffer.from(dir) })
  const newer = createImageBuilder(docker, { logger: silentLogger, assets })
  const missing = { code: 'sandbox_image_missing', message: expect.stringMatching(/not allow builds.*npm run setup/) }
  await expect(newer.ensure()).rejects.toMatchObject(missing)
  const nowhere = async () => ({ ...(await assets()), packages: Buffer.from(dir) })
  await expect(createImageBuilder(docker, { logger: silentLogger, assets: nowhere }).ensure()).rejects.toMatchObject(
    missing
  )
  const own = createImageBuilder(docker, { logger: silentLogger, image: 'registry.invalid/own:1' })
  await expect(own.ensure()).rejects.toMatchObject(missing)
})
