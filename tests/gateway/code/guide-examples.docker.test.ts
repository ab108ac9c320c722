/** Runs the examples of the guide "Code mode" as they are written there, over the real servers that they name. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { RunIndex } from '../../../server/code/run-index.ts'
import { RunLog } from '../../../server/code/run-log.ts'
import { packageRoot } from '../../../server/lib/files/package-root.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import { ApprovalInbox } from '../../../server/policy/approval-inbox.ts'
import { openEmbeddedStore } from '../../../server/storage/embedded/open-embedded-store.ts'
import { eventually } from '../../support/eventually.ts'
import { type GatewayProcess, startGateway } from '../../support/gateway-process.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const guide = readFileSync(join(packageRoot(), 'docs/guides/code-mode.md'), 'utf8')
const [, examples = ''] = /\n## Examples\n([\s\S]*?)\n## /.exec(guide) ?? []
const folder = temporaryFolder()
const dataDir = temporaryFolder()
const memory = join(folder, 'memory.jsonl')
let gateway: GatewayProcess
let store: Awaited<ReturnType<typeof openEmbeddedStore>>

/** The example below this sentence. Its folders are those of this test. */
function example(sentence: string): string {
  const [, code = ''] = examples.split(sentence)[1]?.split('```ts\n') ?? []
  const placed = code
    .split('\n```')[0]
    ?.replaceAll('/notes/', `${folder}/notes/`)
    .replaceAll('/data/', `${folder}/data/`)
  if (!placed) throw new Error(`The guide has no example "${sentence}"`)
  return placed
}

async function run(args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const { structuredContent } = await gateway.client.callTool(
    { name: 'run_code', arguments: args },
    { timeout: 100_000 }
  )
  return { ...(structuredContent as Record<string, unknown>) }
}

const entity = (name: string) => ({ type: 'entity', name, entityType: 'person', observations: [] })

beforeAll(async () => {
  for (const name of ['notes', 'data']) mkdirSync(join(folder, name))
  writeFileSync(memory, [entity('Lin'), entity('Sam')].map((each) => JSON.stringify(each)).join('\n'))
  writeFileSync(join(folder, 'notes/Lin.txt'), 'four words are here')
  const server = (name: string) =>
    join(packageRoot(), `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`)
  const servers = {
    memory: { command: process.execPath, args: [server('memory')], env: { MEMORY_FILE_PATH: memory } },
    filesystem: { command: process.execPath, args: [server('filesystem'), folder] }
  }
  gateway = await startGateway(servers, { args: ['--code'], env: { DATA_DIR: dataDir } })
  store = await openEmbeddedStore({ dataDir, deploymentId: undefined, logger: silentLogger })
})
afterAll(async () => {
  await gateway.end()
  await store.close()
})

it('runs the example that the description of the tool has', async () => {
  writeFileSync(join(folder, 'data/lines.csv'), 'a\nb\nc')
  const { tools } = await gateway.client.listTools()
  const description = tools.find(({ name }) => name === 'run_code')?.description ?? ''
  const [, code = ''] = /\nExample: (.*)/.exec(description) ?? []
  expect(await run({ code: code.replace('/data/report.csv', join(folder, 'data/lines.csv')) })).toMatchObject({
    value: 3
  })
})

it('has three examples', () => {
  expect(examples.match(/```ts\n/g)).toHaveLength(3)
})

it('joins two servers', async () => {
  expect(await run({ code: example('Join two servers:') })).toMatchObject({
    status: 'completed',
    value: [
      { name: 'Lin', words: 4 },
      { name: 'Sam', words: 1 }
    ]
  })
})

it('retries what fails', async () => {
  const running = run({ code: example('Retry what fails:') })
  const index = new RunIndex(store.keyValues)
  await eventually('the first call has failed', async () => {
    const open = (await index.list()).find(({ entry }) => entry.status !== 'ended')
    const log = open && (await RunLog.load(store.events, open.runId))
    return log?.state.calls.get(1)?.done?.outcome.ok === false
  })
  writeFileSync(join(folder, 'data/report.csv'), 'a;b')
  const { status, value, calls } = await running
  expect([status, JSON.stringify(value)]).toEqual(['completed', expect.stringContaining('a;b')])
  expect(calls).toBeGreaterThan(1)
})

it('writes after approval, with both calls in the inbox together', async () => {
  const { status, runId } = await run({ code: example('Write after approval.') })
  expect(status).toBe('waiting')
  const before = existsSync(memory) ? readFileSync(memory, 'utf8') : ''
  expect(before).not.toContain('Grace')
  const inbox = new ApprovalInbox(store.keyValues)
  await eventually('both calls wait', async () => (await inbox.open()).length === 2)
  const cards = await inbox.open()
  expect(cards.map(({ code }) => code?.runId)).toEqual([runId, runId])
  const written = () => (existsSync(memory) ? readFileSync(memory, 'utf8') : '')
  // One after the other: the server reads and writes its whole file for each call, and loses one of two at once.
  for (const { id, hash } of cards) {
    const known = written()
    await inbox.answer(id, hash, { approved: true })
    await eventually('the call has written', () => written() !== known)
  }
  let ended: Record<string, unknown> = {}
  await eventually('the program ends', async () => {
    ended = await run({ runId })
    return ended.status !== 'waiting' && ended.status !== 'running'
  })
  expect(ended).toMatchObject({ status: 'completed', calls: 2 })
  const after = readFileSync(memory, 'utf8')
  for (const name of ['Lin', 'Ada', 'Grace']) expect(after).toContain(`"${name}"`)
})
