import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import type { AuditEntry } from '../../contract/audit.ts'
import { hasHidden } from '../../contract/hidden-characters.ts'
import { child, real } from '../../server/connections/connections.fixture.ts'
import { eventually } from '../support/eventually.ts'
import { type GatewayProcess, spawnGateway, startGateway } from '../support/gateway-process.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
const start: typeof startGateway = async (servers, options) => {
  const gateway = await startGateway(servers, options)
  running.push(gateway)
  return gateway
}
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})

async function audit(dir: string, ...args: string[]): Promise<{ code: number | null; out: string }> {
  const command = spawnGateway(['audit', ...args], { DATA_DIR: join(dir, 'data') })
  let out = ''
  command.stdout.on('data', (chunk) => {
    out += chunk
  })
  const code = await new Promise<number | null>((done) => command.once('close', done))
  return { code, out }
}

async function rows(dir: string, ...args: string[]): Promise<AuditEntry[]> {
  const { out } = await audit(dir, '--json', '--limit', '1000', ...args)
  return out.split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line)))
}

const auditText = (dir: string) => {
  const folder = join(dir, 'data', 'audit')
  if (!existsSync(folder)) return ''
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('')
}

describe('the audit log of a real gateway', { timeout: 60_000 }, () => {
  it('has a row for every way a request can end', async () => {
    const reached = join(mkdtempSync(join(tmpdir(), 'audit-')), 'calls')
    const { call, client, dir } = await start({
      everything: { ...real('server-everything'), approval: { 'get-env': 'deny', 'get-tiny-image': 'ask' } },
      steady: child('steady', [reached]),
      broken: child('crash-on-start')
    })
    const run = (server: string, tool: string, params: Record<string, unknown> = {}) =>
      call('execute', { server, tool, params })
    await run('everything', 'echo', { message: 'hello' })
    await call('find_tool', { query: 'add two numbers together' })
    await call('execute', { request: 'zzz qqq xxyyzz' })
    await run('everything', 'get-sum', { a: 1 })
    await run('everything', 'get-env')
    await run('everything', 'get-tiny-image')
    await run('nowhere', 'x')
    await run('broken', 'x')
    const controller = new AbortController()
    const hanging = client.callTool(
      { name: 'execute', arguments: { server: 'steady', tool: 'hang' } },
      { signal: controller.signal }
    )
    hanging.catch(() => {})
    await eventually('the call to reach the server', () => existsSync(reached))
    controller.abort()
    await eventually('the end of the cancelled call', () => auditText(dir).includes('"code":"cancelled"'))
    const seen = (await rows(dir)).map(({ kind, server, tool, outcome, code }) => [kind, server, tool, outcome, code])
    expect(seen).toEqual([
      ['call', 'everything', 'echo', 'ok', undefined],
      ['route', undefined, undefined, 'found', undefined],
      ['route', undefined, undefined, 'abstained', undefined],
      ['route', 'everything', 'get-sum', 'needs_params', undefined],
      ['route', 'everything', 'get-env', 'refused', 'denied_by_policy'],
      ['call', 'everything', 'get-tiny-image', 'refused', 'approval_unavailable'],
      ['route', 'nowhere', 'x', 'failed', 'unknown_server'],
      ['route', 'broken', 'x', 'failed', expect.stringMatching(/^server_/)],
      ['call', 'steady', 'hang', 'unknown', 'cancelled']
    ])
    expect(await rows(dir, '--server', 'everything', '--outcome', 'ok', '--since', '5m')).toHaveLength(1)
  })

  it('shows a call that a kill -9 cut short, and a process that was killed', async () => {
    const { client, dir, process: gateway, exited } = await start({ steady: child('steady') })
    client.callTool({ name: 'execute', arguments: { server: 'steady', tool: 'hang' } }).catch(() => {})
    await eventually('the call to be on record', () => auditText(dir).includes('"tool":"hang"'))
    gateway.kill('SIGKILL')
    await exited
    expect(await rows(dir)).toMatchObject([{ tool: 'hang', outcome: 'unknown' }])
    expect(await audit(dir, 'verify')).toMatchObject({ code: 0, out: expect.stringMatching(/^unclosed /) })
  })

  it('finds what was changed, and says where', async () => {
    const { call, dir, process: gateway, exited } = await start({ everything: real('server-everything') })
    await call('execute', { server: 'everything', tool: 'echo', params: { message: 'hello' } })
    await call('execute', { server: 'everything', tool: 'x\u202e\x1b[2J\u{e0080}\ny' })
    gateway.stdin.end()
    await exited
    expect(await audit(dir, 'verify')).toMatchObject({ code: 0, out: expect.stringMatching(/^intact /) })
    const shown = [await audit(dir), await audit(dir, '--json')].map(({ out }) => out)
    expect(shown[0]).toContain('everything/x⟨U+202E⟩⟨U+001B⟩[2J⟨U+E0080⟩⟨U+000A⟩y ')
    expect(shown.some((text) => hasHidden(text))).toBe(false)
    const folder = join(dir, 'data', 'audit')
    const name = readdirSync(folder).find((each) => !each.includes('.routes.')) ?? ''
    const text = readFileSync(join(folder, name), 'utf8')
    writeFileSync(join(folder, name), text.replace('"tool":"echo"', '"tool":"ohce"'))
    const { code, out } = await audit(dir, 'verify')
    expect([code, out]).toEqual([1, expect.stringContaining(`${name}:2: this row was edited`)])
  })

  it('runs nothing that it can not record, and goes on when it can', async () => {
    const { call, dir } = await start({ everything: real('server-everything') })
    const folder = join(dir, 'data', 'audit')
    await call('list_capabilities', {})
    writeFileSync(folder, 'no folder')
    const echo = { server: 'everything', tool: 'echo', params: { message: 'hello' } }
    const refused = await call('execute', echo)
    expect([refused.isError, refused._meta]).toEqual([
      true,
      { 'mcp-orchestrator/error': { code: 'audit_unavailable' } }
    ])
    rmSync(folder)
    expect(textOf(await call('execute', echo))).toBe('Echo: hello')
    await eventually('the gap to be told', () => /"kind":"gap".*"refused":1/.test(auditText(dir)))
  })

  it('holds no secret, with arguments too', async () => {
    const secret = `s3cr3t-${crypto.randomUUID()}`
    const credentials = join(process.env.TMPDIR ?? '/tmp', `credentials-${crypto.randomUUID()}.json`)
    writeFileSync(credentials, JSON.stringify({ KEY: secret }))
    chmodSync(credentials, 0o600)
    const entry = { ...real('server-everything'), env: { KEY: `\${secret:${'KEY'}}` } }
    const env = { CREDENTIALS_FILE: credentials, AUDIT_ARGUMENTS: 'true' }
    const { call, dir } = await start({ everything: entry }, { env })
    await call('find_tool', { query: `what is ${secret}` })
    await call('execute', { server: 'everything', tool: 'echo', params: { message: `it is ${secret}` } })
    await call('execute', { server: 'everything', tool: secret })
    await call('execute', { request: `echo ${secret} please` })
    const { stdout } = await promisify(execFile)('grep', ['-rlF', secret, join(dir, 'data', 'audit')]).catch(() => ({
      stdout: ''
    }))
    expect(stdout).toBe('')
    const texts = (await rows(dir)).map(({ arguments: args, request }) => args ?? request)
    expect(texts).toContain('{"message":"it is [secret]"}')
    expect(texts).toContain('what is [secret]')
    rmSync(credentials)
  })
})
