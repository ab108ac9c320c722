import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { ApprovalCard } from '../../../contract/rest.ts'
import { child } from '../../../server/connections/connections.fixture.ts'
import { isRecord } from '../../../server/lib/is-record.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import { ApprovalInbox } from '../../../server/policy/approval-inbox.ts'
import { openEmbeddedStore } from '../../../server/storage/embedded/open-embedded-store.ts'
import { eventually } from '../../support/eventually.ts'
import { type GatewayProcess, startGateway } from '../../support/gateway-process.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const running: GatewayProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})

const SECRET = 'sk-not-in-the-sandbox-1234'
/** Shared by the gateways of a test: the data folder, and the file in which the server counts its writes. */
const place = () => ({ data: temporaryFolder(), count: join(temporaryFolder(), 'count') })

async function start({ data, count }: ReturnType<typeof place>, args: string[] = []): Promise<GatewayProcess> {
  const env = { DATA_DIR: data, GATEWAY_ONLY_SECRET: SECRET }
  const servers = { steady: child('steady', [count], { env: { TOKEN: SECRET } }) }
  const gateway = await startGateway(servers, { args: ['--code', ...args], env })
  running.push(gateway)
  return gateway
}

async function run(gateway: GatewayProcess, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const { structuredContent } = await gateway.client.callTool(
    { name: 'run_code', arguments: args },
    { timeout: 100_000 }
  )
  return isRecord(structuredContent) ? structuredContent : {}
}

/** Decides in the inbox like a page that another process serves. */
async function decide({ data }: ReturnType<typeof place>): Promise<ApprovalCard[]> {
  const store = await openEmbeddedStore({ dataDir: data, deploymentId: undefined, logger: silentLogger })
  try {
    const inbox = new ApprovalInbox(store.keyValues)
    const cards = await inbox.open()
    for (const { id, hash } of cards) await inbox.answer(id, hash, { approved: true })
    return cards
  } finally {
    await store.close()
  }
}

const lines = ({ count }: ReturnType<typeof place>) =>
  existsSync(count) ? readFileSync(count, 'utf8').trim().split('\n').filter(Boolean) : []
const containers = () =>
  execFileSync('docker', ['ps', '-aq', '--filter', 'label=mcp-orchestrator.server=run_code'], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)

it('runs a program in a sandbox, which has no secret, no network and no file of ours', async () => {
  const gateway = await start(place())
  const { tools } = await gateway.client.listTools()
  expect(tools.map(({ name }) => name)).toContain('run_code')
  const code = `const all: string[] = await Promise.all([1, 2, 3].map((n) => tools.steady.echo({ message: 'm' + n })))
console.log('got', all.length)
const signature = await describe('steady', 'echo')
;({ all, signature, globals: Object.getOwnPropertyNames(globalThis).filter((name) => /process|require|fetch|module/i.test(name)) })`
  expect(await run(gateway, { code })).toMatchObject({
    status: 'completed',
    value: {
      all: ['m1', 'm2', 'm3'],
      signature: expect.stringContaining('tools.steady.echo(args: { message: string })'),
      globals: []
    },
    calls: 3,
    logs: 'got 3'
  })
  // The sandbox that is kept ready for the next program, looked at from outside.
  await eventually('a warm sandbox', () => containers().length === 1)
  const inspected = execFileSync('docker', ['inspect', ...containers()], { encoding: 'utf8' })
  expect(inspected).not.toContain(SECRET)
  expect(JSON.parse(inspected)[0].HostConfig.NetworkMode).toBe('none')
})

// The program asks in many ways, and whoever has broken out of its realm looks around in its container.
it('shows no secret inside, however the program asks', async () => {
  const gateway = await start(place())
  const code = `const said: unknown[] = []
const ways = [
  () => describe('steady', 'echo'), () => describe('steady', 'env'), () => describe('steady', '../env'), () => search('secret token key'),
  () => search('TOKEN'), () => tools.steady.echo({ message: '\${env:GATEWAY_ONLY_SECRET} \${TOKEN} $TOKEN' }), () => tools.steady.echo(),
  () => tools.steady.complain(), () => tools.steady.die(), () => tools.steady.nothing(), () => tools.nobody.read(), () => tools.steady.meta(),
  () => tools['mcp-orchestrator'].env(), () => tools.workspace.read_file({ path: '/proc/self/environ' }),
  () => tools.constructor.constructor('return process.env')(), () => import('node:fs'), () => import('/proc/self/environ'), () => eval('process.env'),
  () => { const dive = (): unknown => { try { return dive() } catch (error) { return Reflect.ownKeys(error as object).map((key) => String((error as any)[key])) } }; return dive() },
  () => Object.getOwnPropertyNames(globalThis).map((name) => [name, String((globalThis as any)[name])]),
  () => new Error('x').stack, () => (0, tools.steady.echo as any).caller, () => JSON.stringify(console) + JSON.stringify(Intl)
]
for (const way of ways) {
  try { said.push(await way()) } catch (error) { said.push([String(error), (error as any)?.stack, (error as any)?.code]) }
}
said`
  const told = await run(gateway, { code })
  expect(told).toMatchObject({ status: 'completed' })
  expect((told.value as unknown[]).length).toBe(23)
  expect(JSON.stringify(told)).not.toContain(SECRET)
  await eventually('a warm sandbox', () => containers().length === 1)
  const look =
    'cat /proc/*/environ /proc/*/cmdline; env; grep -rhas sk-not-in /etc /home /opt /root /run /tmp /usr/local /var /workspace; true'
  const seen = execFileSync('docker', ['exec', '-u', '0', ...containers(), 'sh', '-c', look], { encoding: 'utf8' })
  expect(seen).toContain('PATH=')
  expect(seen.replaceAll(look, '')).not.toContain(SECRET)
})

it('waits for approval, survives kill -9, and sends each write once', async () => {
  const shared = place()
  const first = await start(shared)
  const code = `const who = await tools.steady.echo({ message: 'someone@example.test' })
await tools.steady.write({ message: who })
await tools.steady.write({ message: 'second' })
who`
  const waiting = await run(first, { code })
  expect(waiting).toMatchObject({ status: 'waiting', waitingFor: [{ tool: 'write', line: 2 }] })
  const { runId } = waiting
  first.process.kill('SIGKILL')
  await first.exited
  const [card] = await decide(shared)
  expect(card).toMatchObject({
    args: { message: 'someone@example.test' },
    code: { line: 2, sources: [{ path: 'message', server: 'steady', tool: 'echo', n: 1 }] }
  })
  expect(lines(shared)).toEqual([])
  const second = await start(shared)
  await eventually('the run to ask for its second write', async () => {
    const report = await run(second, { runId })
    return report.status === 'waiting' && lines(shared).length === 1
  })
  await decide(shared)
  await eventually('the run to end', async () => (await run(second, { runId })).status === 'completed')
  expect(await run(second, { runId })).toMatchObject({ status: 'completed', value: 'someone@example.test' })
  expect(lines(shared)).toEqual(['someone@example.test', 'second'])
})

it('continues a program after a restart, although its client calls nothing', async () => {
  const shared = place()
  const config = join(temporaryFolder(), 'mcp.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { steady: child('steady', [shared.count]) } }))
  // Only a gateway with the same servers continues a program by itself.
  const first = await start(shared, ['--config', config])
  expect(await run(first, { code: "await tools.steady.write({ message: 'a' })" })).toMatchObject({ status: 'waiting' })
  first.process.kill('SIGKILL')
  await first.exited
  await decide(shared)
  await start(shared, ['--config', config])
  await eventually('the approved write', () => lines(shared).length > 0)
  expect(lines(shared)).toEqual(['a'])
})

it('ends a program that loops for ever, and leaves no container behind', async () => {
  const gateway = await start(place())
  expect(await run(gateway, { code: 'for (;;) {}', timeoutMs: 3000 })).toMatchObject({
    status: 'failed',
    error: { code: 'code_timeout' }
  })
  const { runId } = await run(gateway, { code: 'await tools.steady.write({ message: "x" })' })
  expect(await run(gateway, { runId, cancel: true })).toMatchObject({ status: 'cancelled' })
  running.splice(running.indexOf(gateway), 1)
  await gateway.end()
  await eventually('all containers to be removed', () => containers().length === 0)
})
