import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join, resolve } from 'node:path'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { seccompOption } from '../../server/sandbox/docker/engine/seccomp-profile.ts'
import { eventually } from '../support/eventually.ts'
import { type GatewayProcess, spawnGateway, startGateway } from '../support/gateway-process.ts'
import { startListeningPackage } from '../support/listening-package.ts'
import { textOf } from '../support/text-of.ts'

const root = resolve(import.meta.dirname, '../..')
const children = join(root, 'tests/fixtures/children')
const running: GatewayProcess[] = []
const start: typeof startGateway = async (servers, options) => {
  const gateway = await startGateway(servers, options)
  running.push(gateway)
  return gateway
}
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})

const docker = (...args: string[]) => execFileSync('docker', args, { encoding: 'utf8', stdio: 'pipe' })
/** The containers of a server, whatever their state. */
const containersOf = (server: string) =>
  docker('ps', '-aq', '--no-trunc', '--filter', `label=mcp-orchestrator.server=${server}`).split('\n').filter(Boolean)
const gone = (server: string, ms?: number) =>
  eventually(`the container of ${server} to be removed`, () => containersOf(server).length === 0, ms)
const unique = (name: string) => `${name}-${crypto.randomUUID()}`

/** A fixture in a container: its folder is what it may read. */
const boxed = (name: string, sandbox: unknown = true, more: Record<string, unknown> = {}) => ({
  command: 'node',
  args: [`${name}.ts`],
  cwd: children,
  sandbox,
  ...more
})
const echo = (server: string, message = 'hi') => ({ server, tool: 'echo', params: { message } })

async function output(command: ReturnType<typeof spawnGateway>): Promise<string> {
  let said = ''
  command.stdout.on('data', (chunk) => {
    said += chunk
  })
  expect(await new Promise((done) => command.once('close', done))).toBe(0)
  return said
}

/** A web server of this machine; ended with the test. */
async function listen(name: string) {
  const seen: string[] = []
  const big = `${'x'.repeat(3_000_000)}END`
  const server = createServer((request, response) => {
    seen.push(request.url ?? '')
    response.end(request.url === '/big' ? big : `${name} ${request.method} ${request.url}`)
  }).listen(0, 'localhost')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const address = server.address()
  return { port: typeof address === 'object' ? address?.port : 0, seen, big }
}

describe('servers in containers', { timeout: 120_000 }, () => {
  it('have the hardening of sessions and the limits of their entry', async () => {
    const name = unique('hard')
    const { call } = await start({ [name]: boxed('steady', { memoryMb: 200, cpus: 0.7 }) })
    expect(textOf(await call('execute', echo(name)))).toBe('hi')
    const [id = ''] = containersOf(name)
    const [{ Config, HostConfig, Mounts, NetworkSettings }] = JSON.parse(docker('inspect', id))
    expect(Config).toMatchObject({
      User: expect.stringMatching(/^(20\d{3}):\1$/),
      Labels: { 'mcp-orchestrator.app': 'child' }
    })
    expect(HostConfig).toMatchObject({
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', seccompOption()],
      Privileged: false,
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      IpcMode: 'private',
      Init: false,
      PidsLimit: 128,
      Memory: 200 * 2 ** 20,
      MemorySwap: 200 * 2 ** 20,
      NanoCpus: 7e8,
      OomScoreAdj: 500,
      AutoRemove: true,
      LogConfig: { Type: 'none' }
    })
    expect(Object.keys(HostConfig.Tmpfs).sort()).toEqual(['/run/mcp', '/tmp', '/workspace'])
    const folder = { Type: 'bind', Source: children, Destination: children, RW: false }
    expect(Mounts).toContainEqual(expect.objectContaining(folder))
    expect(Mounts).toHaveLength(2)
    expect(NetworkSettings.IPAddress).toBe('')
  })

  it('run real servers from a folder that is shared for reading', async () => {
    const name = unique('everything')
    const modules = realpathSync(join(root, 'node_modules'))
    const args = [join(modules, '@modelcontextprotocol/server-everything/dist/index.js')]
    const { call } = await start({ [name]: { command: 'node', args, sandbox: { folders: [modules] } } })
    expect(textOf(await call('execute', echo(name)))).toBe('Echo: hi')
  })

  it('give secrets to the command alone', async () => {
    const name = unique('secret')
    const secret = unique('S3CRET')
    const since = Math.floor(Date.now() / 1000) - 1
    const env = { TOKEN: `\${secret:BOX_TOKEN}`, LINES: 'one\ntwo \'"$HOME"', PLAIN: 'plain' }
    const gateway = await start(
      { [name]: boxed('steady', {}, { env }) },
      { env: { BOX_TOKEN: secret, LOG_LEVEL: 'trace' } }
    )
    const seen = JSON.parse(textOf(await gateway.call('execute', { server: name, tool: 'env' })))
    expect(seen).toMatchObject({ ...env, TOKEN: secret, HOME: '/workspace' })
    expect(
      Object.keys(seen)
        .filter((key) => !['PWD', 'SHLVL', '_', 'PATH', 'HOSTNAME', 'HOME', 'OLDPWD'].includes(key))
        .sort()
    ).toEqual(Object.keys(env).sort())
    await gateway.call('execute', { server: name, tool: 'complain' })
    const [id = ''] = containersOf(name)
    const execs: string[] = JSON.parse(docker('inspect', id))[0].ExecIDs
    const shown = execs.map((exec) =>
      execFileSync('curl', ['-s', '--unix-socket', '/var/run/docker.sock', `http://d/exec/${exec}/json`], {
        encoding: 'utf8'
      })
    )
    expect(shown.join('')).toContain('steady.ts')
    gateway.process.stdin.end()
    await gateway.exited
    const events = docker(
      'events',
      '--since',
      String(since),
      '--until',
      String(Math.ceil(Date.now() / 1000)),
      '--format',
      '{{json .}}'
    )
    expect(events).toContain('exec_create')
    const log = readFileSync(join(gateway.dir, 'data/server-logs', `${name}.log`), 'utf8')
    expect(log).toContain('secret is [secret]')
    const commandLines = readdirSync('/proc')
      .filter((pid) => /^\d+$/.test(pid))
      .map((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        } catch {
          return ''
        }
      })
    const places = { inspect: shown.join(), events, log, stderr: gateway.stderr(), commandLines: commandLines.join() }
    for (const [place, text] of Object.entries(places)) expect([place, text.includes(secret)]).toEqual([place, false])
  })

  it.each(['SIGKILL', 'SIGTERM', 'stdin'])('leave nothing behind after %s of the gateway', async (how) => {
    const name = unique('stubborn')
    const gateway = await startGateway({ [name]: boxed('stubborn') })
    await gateway.call('execute', { server: name, tool: 'ready' })
    const [id = ''] = containersOf(name)
    await eventually('its grandchildren to live', () => docker('top', id).split('stubborn-').length === 4)
    if (how === 'stdin') gateway.process.stdin.end()
    else gateway.process.kill(how as NodeJS.Signals)
    await gateway.exited
    await gone(name)
  })

  // As when the control group of the gateway is killed: nobody outside is left to remove the container.
  // Checked: under the engine's own init the supervisor stays stopped, and from a bash that everyone can read its input stays open.
  it('end with a gateway that is killed with its watchdogs, even if they hold the supervisor back', async () => {
    const name = unique('holder')
    const gateway = await startGateway({ [name]: boxed('shell') })
    const hold = `for pid in 1 $(cat /proc/1/task/1/children); do kill -STOP $pid; done
      setsid /bin/bash -c 'trap "" TERM HUP INT; exec </dev/null >/dev/null 2>&1
        for pid in 1 $(cat /proc/1/task/1/children); do exec {held}>/proc/$pid/fd/0; all="$all $held"; done
        while :; do for held in $all; do echo >&$held; done; sleep 1; done' & sleep 1; echo held`
    expect(textOf(await gateway.call('execute', { server: name, tool: 'run', params: { command: hold } }))).toMatch(
      /held/
    )
    const [id = ''] = containersOf(name)
    const { pid = 0 } = gateway.process
    const group = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
    process.kill(pid, 'SIGSTOP')
    for (const each of [...group, pid]) process.kill(each, 'SIGKILL')
    await gateway.exited
    await gone(name, 60_000).finally(() => containersOf(name).length > 0 && docker('rm', '-f', id))
  })

  it('leave nothing behind when the gateway is killed while one is made', async () => {
    const name = unique('early')
    const gateway = await startGateway({ [name]: boxed('stubborn') })
    gateway.call('execute', { server: name, tool: 'ready' }).catch(() => {})
    await eventually('its container to be made', () => containersOf(name).length === 1)
    gateway.process.kill('SIGKILL')
    await gateway.exited
    await gone(name)
  })

  // Checked: if any host is allowed, the host is reached.
  it('reach only the named hosts, and refused ones are reported', async () => {
    const name = unique('network')
    const named = await listen('named')
    const other = await listen('other')
    const gateway = await start({
      [name]: boxed('fetcher', { network: [`localhost:${named.port}`, '*.example.com'] }),
      [`${name}-off`]: boxed('fetcher', {}, { env: { HTTP_PROXY: 'http://127.0.0.1:3128', NODE_USE_ENV_PROXY: '1' } })
    })
    const ask = async (server: string, tool: string, url: string) =>
      textOf(await gateway.call('execute', { server, tool, params: { url } }))
    expect(await ask(name, 'fetch', `http://localhost:${named.port}/a?b=c`)).toBe('200 named GET /a?b=c')
    const big = await ask(name, 'fetch', `http://localhost:${named.port}/big`)
    expect([big.length, big.slice(-3)]).toEqual([named.big.length + 4, named.big.slice(-3)])
    for (let i = 0; i < 2; i++) {
      const refused = await ask(name, 'fetch', `http://localhost:${other.port}/`)
      expect(refused).toMatch(/^(403|failed)/)
    }
    await ask(name, 'fetch', 'http://169.254.169.254/latest/meta-data')
    // Past the proxy there is nothing: its loopback is its own, and there is no route.
    expect(await ask(name, 'dial', `http://127.0.0.1:${named.port}`)).toMatch(/ECONNREFUSED/)
    expect(await ask(name, 'dial', `http://172.17.0.1:${named.port}`)).toMatch(/ENETUNREACH/)
    // Without a list there is no proxy either.
    expect(await ask(`${name}-off`, 'fetch', `http://localhost:${named.port}/`)).toMatch(/ECONNREFUSED/)
    expect([named.seen, other.seen]).toEqual([['/a?b=c', '/big'], []])
    const [id = ''] = containersOf(name)
    expect(JSON.parse(docker('inspect', id))[0].HostConfig.NetworkMode).toBe('none')

    const refusal = `refused localhost:${other.port}: it is not on the list`
    await expect.poll(() => gateway.stderr()).toContain(refusal)
    gateway.process.stdin.end()
    await gateway.exited
    const settings = { DATA_DIR: join(gateway.dir, 'data') }
    const logs = await output(spawnGateway(['servers', 'logs', name, '--config', gateway.config], settings))
    expect(logs).toContain(`[network] refused localhost:${other.port}: it is not on the list`)
    const health = JSON.parse(
      await output(spawnGateway(['servers', 'health', name, '--json', '--config', gateway.config], settings))
    )
    expect(health).toMatchObject([
      { server: name, denied: { [`localhost:${other.port}`]: { count: 1 }, '169.254.169.254:80': { count: 1 } } }
    ])
  })

  // Checked: if only the list counts, the instance is reached.
  it('reach no port of an instance, whatever hosts are named', async () => {
    const name = unique('instance')
    const [instance, other] = await Promise.all(
      ['mcp-orchestrator', 'another-program'].map((program) => startListeningPackage(program, '127.0.0.1'))
    )
    const gateway = await start({ [name]: boxed('fetcher', { network: ['localhost:*', '127.0.0.1:*'] }) })
    const ask = async (url: string) =>
      textOf(await gateway.call('execute', { server: name, tool: 'fetch', params: { url } }))
    expect(await ask(`http://127.0.0.1:${other}/`)).toBe('200 reached')
    for (const host of ['127.0.0.1', 'localhost']) {
      expect(await ask(`http://${host}:${instance}/`)).toMatch(/^(403|failed)/)
      await expect.poll(gateway.stderr).toContain(`refused ${host}:${instance}: that port belongs to MCP Orchestrator`)
    }
  })

  it('stop when idle, and start again with the next call', async () => {
    const name = unique('idle')
    const { call } = await start({ [name]: boxed('steady', true, { idleSeconds: 0.2 }) })
    await call('execute', echo(name))
    const first = containersOf(name)
    await gone(name)
    expect(textOf(await call('execute', echo(name)))).toBe('hi')
    expect(containersOf(name)).not.toEqual(first)
  })

  it('are replaced when their command dies, also when something else holds its streams open', async () => {
    const name = unique('dies')
    const args = ['-c', 'sleep 1000 & exec node steady.ts']
    const { call } = await start({ [name]: boxed('steady', true, { command: 'bash', args }) })
    await call('execute', echo(name))
    const [id = ''] = containersOf(name)
    const processes = docker('top', id, '-eo', 'pid,args').split('\n')
    const own = processes.filter((line) => /^\s*\d+\s+node steady/.test(line))
    expect([own.length, processes.some((line) => line.endsWith('sleep 1000'))]).toEqual([1, true])
    process.kill(Number.parseInt(own.join(), 10), 'SIGKILL')
    await gone(name)
    expect(textOf(await call('execute', echo(name)))).toBe('hi')
    expect(containersOf(name)).toHaveLength(1)
  })

  it('say what is wrong when they cannot start, and the others keep working', async () => {
    const { call } = await start({
      command: { command: 'no-such-command', sandbox: true },
      folder: boxed('steady', { folders: ['/srv/no/such/folder'] }),
      image: boxed('steady', { image: 'localhost:1/no/such:image' }),
      variable: boxed('steady', true, { env: { 'no.name': 'x' } }),
      fine: child('steady')
    })
    const said = async (server: string) =>
      textOf(await call('execute', { server, tool: 'echo', params: { message: 'x' } }))
    expect(await said('command')).toMatch(
      /"command" did not start: .*exit code 127; check that its image has a command "no-such-command"/
    )
    expect(await said('folder')).toMatch(/"folder" can't get its sandbox: .*\/srv\/no\/such\/folder/)
    expect(await said('image')).toMatch(/"image" can't get its sandbox: .*localhost:1\/no\/such:image.*docker pull/)
    expect(await said('variable')).toMatch(/"variable" can't be started: "no.name" is not a valid name/)
    expect(await said('fine')).toBe('x')
  })

  it('need an engine, and say so', async () => {
    const { call } = await start(
      { boxed: boxed('steady'), fine: child('steady') },
      { env: { DOCKER_HOST: 'unix:///nowhere/docker.sock' } }
    )
    expect(textOf(await call('execute', echo('boxed')))).toMatch(
      /"boxed" can't get its sandbox: The container engine does not answer: start Docker, or ask the operator of this server\./
    )
    expect(textOf(await call('execute', echo('fine')))).toBe('hi')
  })

  it('are tried by `servers test`, which leaves no container', async () => {
    const name = unique('tested')
    const gateway = await start({})
    writeFileSync(gateway.config, JSON.stringify({ mcpServers: { [name]: boxed('steady') } }))
    const tested = spawnGateway(['servers', 'test', '--config', gateway.config], {
      DATA_DIR: join(gateway.dir, 'other')
    })
    expect(await output(tested)).toMatch(/^ok {4}tested-.*: \d+ tools/)
    await gone(name)
  })

  it('left incomplete by a gateway that was killed are removed by the next one', async () => {
    const name = unique('leftover')
    const image = docker('image', 'ls', '-q', 'mcp-orchestrator-sandbox').split('\n')[0] ?? ''
    const make = (age: number) =>
      docker(
        'create',
        '--label',
        'mcp-orchestrator.app=child',
        '--label',
        `mcp-orchestrator.server=${name}`,
        '--label',
        `mcp-orchestrator.created=${Date.now() - age}`,
        image
      ).trim()
    const [old, young] = [make(120_000), make(0)]
    try {
      const other = unique('sweeps')
      const { call } = await start({ [other]: boxed('steady') })
      await call('execute', echo(other))
      await eventually('the old one to be removed', () => !containersOf(name).includes(old))
      expect(containersOf(name)).toEqual([young])
    } finally {
      docker('rm', '-f', young)
    }
  })
})
