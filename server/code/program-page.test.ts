/** Keeps the page that models get about programs true: every name in it works as the page says, in the realm itself. */
import { afterAll, expect, it } from 'vitest'
import { silentLogger } from '../lib/logger.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { CodeRuns } from './code-runs.ts'
import { fakeEventLog } from './fake-event-log.ts'
import type { ProgramCalls } from './program-call.ts'
import { PROGRAM_API, PROGRAM_PURPOSE } from './program-page.ts'
import { localRealm } from './realms/local-realm.fixture.ts'

const LIMITS = { MAX_SESSION_LOG_MB: 64, MAX_OWNER_LOG_MB: 1024, MAX_LOG_MB: 10_240 }
const keyValues = fakeKeyValueStore()
const progress: string[] = []
const runs = new CodeRuns({
  ...{ events: fakeEventLog(), keyValues, inbox: new ApprovalInbox(keyValues), logger: silentLogger },
  openRealm: async () => localRealm(),
  home: 'test',
  limits: LIMITS
})
const MATCH = { server: 'my-server', tool: 'my-tool', confidence: 1, description: 'd' }
const calls: ProgramCalls = {
  async run({ kind, server, tool, args }) {
    if (kind === 'search') return { ok: true, value: [MATCH] }
    if (kind === 'describe') return { ok: true, value: `tools.${server}.${tool}(args: {}): Promise<string>` }
    if (tool === 'fails') return { ok: false, code: 'tool_failed', message: 'no' }
    return { ok: true, value: [server, tool, args] }
  }
}
afterAll(() => runs.close())

async function run(code: string) {
  const runId = await runs.start({ code, timeoutMs: 20_000, asker: { owner: 'local', door: 'stdio' }, calls })
  const onProgress = (text: string) => void progress.push(text)
  const { state } = await runs.report(runId, { owner: 'local', calls, onProgress })
  return { end: state.end, logs: state.logs }
}

it('names only functions that a program has, and things that it does not have', async () => {
  const named = [...PROGRAM_API.matchAll(/\b([a-z][\w.]*)\(/gi)].map(([, name = '']) => name)
  const functions = named.filter((name) => !name.startsWith('tools.'))
  expect(functions).toEqual(['search', 'describe', 'progress', 'console.log'])
  const { end } =
    await run(`({ is: [${functions.join(',')}, setTimeout, Promise.all, ToolError, Math.random].map((each) => typeof each),
not: ['fetch', 'process', 'require', 'URL', 'Buffer', 'crypto'].filter((name) => name in globalThis) })`)
  expect(end).toMatchObject({ value: { is: Array(8).fill('function'), not: [] } })
  for (const word of [
    'setTimeout',
    'Promise.all',
    'ToolError',
    'Math.random',
    'import',
    'fetch',
    'process',
    'URL',
    'Buffer'
  ])
    expect(PROGRAM_API).toContain(word)
})

it('is true about calls, errors, searches, output and values', async () => {
  const { end, logs } =
    await run(`const failed = await tools.SERVER.fails().catch((error) => [error instanceof ToolError, error.code, error.message])
const [found] = await search("words")
progress('half')
console.log('printed')
await new Promise((resolve) => setTimeout(resolve, 1))
const both = await Promise.all([tools.SERVER.TOOL({ a: 1 }), tools["my-server"]["my-tool"]()])
const about: string = await describe(found.server, found.tool)
;({ failed, found, both, about })`)
  expect(end).toMatchObject({
    value: {
      failed: [true, 'tool_failed', 'no'],
      found: MATCH,
      both: [
        ['SERVER', 'TOOL', { a: 1 }],
        ['my-server', 'my-tool', {}]
      ],
      about: expect.stringContaining('Promise<string>')
    }
  })
  expect(logs).toEqual(['printed'])
  expect(progress).toEqual(['half'])
  expect((await run('return 5')).end).toMatchObject({ value: 5 })
  expect((await run('await import("node:fs")')).end).toMatchObject({ ok: false })
})

it('is short enough to be offered with every step', () => {
  expect(PROGRAM_PURPOSE.length + PROGRAM_API.length).toBeLessThan(1000)
})
