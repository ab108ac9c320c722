/**
 * compose.yaml: what it promises about security, and its image, proxy and server run as it says, by plain calls of the engine
 * (no compose needed, and no Redis image: the store is the embedded one here).
 */
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import Dockerode from 'dockerode'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { silentLogger } from '../../server/lib/logger.ts'
import { readImageAssets } from '../../server/sandbox/docker/image/image-assets.ts'
import { defaultBaseName } from '../../server/sandbox/docker/image/image-base.ts'
import { createImageBuilder } from '../../server/sandbox/docker/image/image-builder.ts'
import { runEngineJob } from '../../server/sandbox/docker/image/image-progress.ts'
import { type TarFile, tarStream } from '../../server/sandbox/docker/image/image-tar.ts'
import { type Client, connectClient } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'

interface Service {
  user: string
  read_only: boolean
  cap_drop: string[]
  security_opt: string[]
  environment?: Record<string, string>
  command?: string | string[]
  volumes?: string[]
  tmpfs?: string[]
  ports?: string[]
  networks?: string[]
  network_mode?: string
  privileged?: boolean
  cap_add?: string[]
  pid?: string
  healthcheck?: { test: string[] }
}

const root = resolve(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const compose = parse(read('compose.yaml'), { merge: true })
const services: Record<string, Service> = compose.services
const {
  orchestrator,
  redis,
  'engine-proxy': proxy
} = services as Record<'orchestrator' | 'redis' | 'engine-proxy', Service>

describe('compose.yaml', () => {
  it.each(Object.keys(services))('keeps %s without rights, and asks how it is', (name) => {
    const service = services[name] as Service
    expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
    expect(service.healthcheck?.test[0]).toBe('CMD')
    for (const right of ['privileged', 'cap_add', 'pid', 'ipc', 'devices', 'userns_mode']) {
      expect(service).not.toHaveProperty(right)
    }
  })

  it("gives the engine's socket to the proxy alone, which has no network", () => {
    const holders = Object.keys(services).filter((name) =>
      services[name]?.volumes?.some((v) => v.includes('docker.sock'))
    )
    expect(holders).toEqual(['engine-proxy'])
    expect(proxy).toMatchObject({
      network_mode: 'none',
      command: ['engine-proxy', '--listen', '/run/engine/docker.sock']
    })
    expect(proxy).not.toHaveProperty('ports')
    expect(orchestrator.environment?.DOCKER_HOST).toBe('unix:///run/engine/docker.sock')
    expect(orchestrator.user).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    // No folder of the host anywhere else: what is kept is in volumes.
    const kept = [...(orchestrator.volumes ?? []), ...(redis.volumes ?? [])].map((volume) => volume.split(':')[0])
    expect(kept.sort()).toEqual(Object.keys(compose.volumes).sort())
  })

  it('opens one port, to this machine, and never without a token', () => {
    expect(orchestrator.ports).toEqual([`\${PUBLISH:-127.0.0.1:3000}:3000`])
    expect(orchestrator.environment?.AUTH_TOKEN).toMatch(/^\$\{AUTH_TOKEN:\?/)
    expect(redis).not.toHaveProperty('ports')
    expect(redis.networks).toEqual(['inside'])
    expect(compose.networks.inside).toEqual({ internal: true })
    expect(redis.command).toContain('--appendonly yes')
  })
})

describe('the image, the proxy and the server', () => {
  const docker = new Dockerode()
  const id = `mcpo-compose-${randomUUID().slice(0, 8)}`
  const token = randomUUID()
  const dir = temporaryFolder()
  const containers: Dockerode.Container[] = []
  let url = ''
  let client: Client | undefined

  /** The service as compose would start it; volumes and networks carry this test's own name. */
  async function create(service: Service, cmd: string[], extra: { env?: string[]; binds?: string[] } = {}) {
    const environment = Object.entries(service.environment ?? {}).filter(([, value]) => !value.includes('$'))
    const binds = (service.volumes ?? []).map((volume) =>
      volume.replace(/^\$\{\w+:-([^}]+)\}/, '$1').replace(/^(?=\w)/, `${id}-`)
    )
    const container = await docker.createContainer({
      Image: id,
      User: service.user,
      Cmd: cmd,
      Env: [...environment.map(([name, value]) => `${name}=${value}`), ...(extra.env ?? [])],
      HostConfig: {
        ReadonlyRootfs: service.read_only,
        CapDrop: service.cap_drop,
        SecurityOpt: service.security_opt,
        Binds: [...binds, ...(extra.binds ?? [])],
        Tmpfs: Object.fromEntries((service.tmpfs ?? []).map((each) => each.split(':') as [string, string])),
        NetworkMode: service.network_mode ?? id,
        Init: true
      }
    })
    containers.push(container)
    await container.start()
    return container
  }

  const addressOf = async (container: Dockerode.Container) =>
    `http://${(await container.inspect()).NetworkSettings.Networks[id]?.IPAddress}:3000`

  const logs = async (container: Dockerode.Container) =>
    (await container.logs({ stdout: true, stderr: true })).toString('utf8').replaceAll('\0', '')

  beforeAll(async () => {
    await createImageBuilder(docker, { logger: silentLogger }).ensure()
    const assets = await readImageAssets()
    const body = tarStream(context())
    const buildargs = { BASE: defaultBaseName(assets) }
    const job = { what: 'the image', quietMs: 60_000, totalMs: 120_000, body }
    await runEngineJob(job, () => docker.buildImage(body, { t: id, buildargs, networkmode: 'none', forcerm: true }))
    await docker.createNetwork({ Name: id })
    await create(proxy, [proxy.command ?? []].flat())
    const env = [`AUTH_TOKEN=${token}`, 'LLM_PROVIDER=demo', 'REDIS_URL=', 'WARM_POOL_SIZE=0']
    const server = await create(orchestrator, ['serve'], { env })
    url = await addressOf(server)
    const isReady = () => fetch(`${url}/readyz`).then((answer) => answer.ok)
    await eventually('ready', () => isReady().catch(() => false), 60_000)
  })

  afterAll(async () => {
    client?.close()
    for (const container of containers.reverse()) {
      await container.stop({ t: 30 }).catch(() => {})
      await container.remove({ force: true, v: true })
    }
    for (const name of Object.keys(compose.volumes))
      await docker
        .getVolume(`${id}-${name}`)
        .remove()
        .catch(() => {})
    await docker.getNetwork(id).remove()
    await docker.getImage(id).remove({ force: true })
    discard(dir)
  })

  it('run a command of a chat in a sandbox, and nobody without the token', async () => {
    expect((await fetch(`${url}/api/models`)).status).toBe(401)
    client = connectClient(url, id, { accessToken: token })
    await client.ready()
    expect(await client.sh('id -u; echo through the proxy')).toMatch(/^20\d{3}\nthrough the proxy/)
  })

  it('pass their own health checks', async () => {
    for (const [container, service] of [
      [containers[0], proxy],
      [containers[1], orchestrator]
    ] as const) {
      const exec = await container?.exec({ Cmd: service.healthcheck?.test.slice(1) ?? [] })
      await exec?.start({ Detach: true })
      await eventually('an answer', async () => (await exec?.inspect())?.Running === false)
      expect((await exec?.inspect())?.ExitCode).toBe(0)
    }
  })

  it('say where the sandbox image must be built if it is missing', async () => {
    const other = join(dir, 'workspace-server.mjs')
    writeFileSync(other, '// another version\n', { mode: 0o644 })
    const binds = [`${other}:/opt/mcp-orchestrator/dist/workspace-server.mjs:ro`]
    const env = ['REDIS_URL=', 'DATA_DIR=/tmp/data', 'LLM_PROVIDER=demo', `AUTH_TOKEN=${token}`]
    const server = await create(orchestrator, ['serve'], { env, binds })
    const said = /The engine has no sandbox image .*does not allow builds: .*npm run setup/
    await eventually('in the log', async () => said.test(await logs(server)), 30_000)
    const headers = { authorization: `Bearer ${token}` }
    const address = await addressOf(server)
    // The answer may be up to two seconds old.
    await eventually('in the readiness', async () => {
      const ready = await fetch(`${address}/readyz`, { headers })
      expect(ready.status).toBe(503)
      return said.test(JSON.stringify(await ready.json()))
    })
  })
})

/** The files that .dockerignore lets into a build. Links are followed, because a checkout's node_modules may be one. */
function context(): TarFile[] {
  const wanted = ['Dockerfile', ...(read('.dockerignore').match(/(?<=^!).+$/gm) ?? [])]
  return wanted
    .flatMap((path) => (statSync(join(root, path)).isDirectory() ? below(path) : [path]))
    .map((path) => {
      const { mode, size } = statSync(join(root, path))
      return { path, mode: mode & 0o777, content: { file: join(root, path), size } }
    })
}

function below(dir: string): string[] {
  return readdirSync(join(root, dir), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
}
