import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { silentLogger } from '../lib/logger.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { CodeRuns, type CodeRunsOptions } from './code-runs.ts'
import { fakeEventLog } from './fake-event-log.ts'
import { newProgram } from './new-program.ts'
import { ApprovalPending, type ProgramCalls } from './program-call.ts'
import { localRealm } from './realms/local-realm.fixture.ts'
import { localPlaces, RealmQueue } from './realms/realm-queue.ts'
import type { RunTimes } from './run-times.ts'

let store: { events: ReturnType<typeof fakeEventLog>; keyValues: ReturnType<typeof fakeKeyValueStore> }
let inbox: ApprovalInbox
const LIMITS = { MAX_SESSION_LOG_MB: 64, MAX_OWNER_LOG_MB: 1024, MAX_LOG_MB: 10_240 }
const opened: CodeRuns[] = []
const sent: unknown[] = []

const calls: ProgramCalls = {
  async run({ server, tool, args }, hooks) {
    if (tool === 'hang')
      await new Promise((_, reject) => hooks.signal.addEventListener('abort', () => reject(new Error())))
    const hash = JSON.stringify(args)
    if (tool === 'write' && !hooks.decided(hash))
      throw new ApprovalPending({ server, tool, args, hash, asker: { door: 'stdio' } })
    await hooks.beforeSending()
    if (tool === 'write') sent.push(args.x)
    return { ok: true, value: sent.length }
  }
}
const local = { owner: 'local', calls }

function instance(
  times: Partial<RunTimes> = {},
  openRealm: CodeRunsOptions['openRealm'] = async () => localRealm(),
  home = 'test'
): CodeRuns {
  const quick = { lingerMs: 10, pollMs: 2, answerMs: 5000, leaseMs: 300, watchMs: 20, ...times }
  const runs = new CodeRuns({ ...store, inbox, openRealm, home, limits: LIMITS, logger: silentLogger, times: quick })
  runs.follow(() => calls)
  opened.push(runs)
  return runs
}

const approve = async (runId: string) => {
  for (const { id, hash, code } of await inbox.open())
    if (code?.runId === runId) await inbox.answer(id, hash, { approved: true })
}
const start = (runs: CodeRuns, code: string) =>
  runs.start({ code, timeoutMs: 20_000, asker: { owner: 'local', door: 'stdio' }, calls })

beforeEach(() => {
  store = { events: fakeEventLog(), keyValues: fakeKeyValueStore() }
  inbox = new ApprovalInbox(store.keyValues)
})
afterEach(async () => {
  for (const runs of opened.splice(0)) await runs.close()
})

it('continues a waiting run on another instance, once it is decided, and only for its owner', async () => {
  const [first, second] = [instance(), instance()]
  const runId = await start(first, 'await tools.s.write({ x: "moved" })')
  expect(await first.report(runId, local)).toMatchObject({ status: 'waiting' })
  await first.close()
  await expect(second.report(runId, { owner: 'other', calls })).rejects.toMatchObject({ code: 'unknown_run' })
  await expect(second.cancel(runId, 'other')).rejects.toMatchObject({ code: 'unknown_run' })
  expect(await second.report(runId, local)).toMatchObject({ status: 'waiting' })
  await approve(runId)
  expect(await second.report(runId, local)).toMatchObject({ status: 'ended', state: { end: { ok: true } } })
  expect(sent.filter((x) => x === 'moved')).toHaveLength(1)
})

// Checked: before, it answered that the program still runs.
it('goes on if the answer comes while the sandbox of the program is given back', async () => {
  const runs = instance({ lingerMs: 500, pollMs: 60_000 })
  const runId = await start(runs, 'await tools.s.write({ x: "late" })')
  expect(await runs.report(runId, local)).toMatchObject({ status: 'waiting' })
  await approve(runId)
  expect(await runs.report(runId, local)).toMatchObject({ status: 'ended', state: { end: { ok: true } } })
})

it('continues in the process that started it without being asked', async () => {
  const runs = instance()
  const runId = await start(runs, 'await tools.s.write({ x: "alone" })')
  expect(await runs.report(runId, local)).toMatchObject({ status: 'waiting' })
  await approve(runId)
  await expect.poll(() => sent.includes('alone')).toBe(true)
})

// Checked: if only clients that ask continue a run, the approved write is never sent.
it('continues in another process with the same servers, although its own has died and no client asks', async () => {
  const first = instance()
  const runId = await start(first, 'await tools.s.write({ x: "adopted" })')
  expect(await first.report(runId, local)).toMatchObject({ status: 'waiting' })
  await expect.poll(() => store.keyValues.get('code-runs', runId)).toMatchObject({ status: 'waiting' })
  await first.close()
  const stranger = instance({}, undefined, 'with other servers')
  const loads = vi.spyOn(store.events, 'read')
  const looks = vi.spyOn(store.keyValues, 'list')
  instance()
  await expect.poll(() => looks.mock.calls.length).toBeGreaterThan(4)
  expect(loads.mock.calls.filter(([id]) => id.includes(runId))).toEqual([])
  vi.restoreAllMocks()
  await approve(runId)
  await expect.poll(() => sent.includes('adopted')).toBe(true)
  await expect
    .poll(() => stranger.report(runId, local))
    .toMatchObject({ status: 'ended', state: { end: { ok: true } } })
})

it('gives all who ask at the same moment the end of a run that one of them continues', async () => {
  const first = instance()
  const runId = await start(first, 'await tools.s.write({ x: "together" }); 5')
  expect(await first.report(runId, local)).toMatchObject({ status: 'waiting' })
  await expect.poll(() => store.keyValues.get('code-runs', runId)).toMatchObject({ status: 'waiting' })
  await first.close()
  await approve(runId)
  const second = instance({ watchMs: 60_000 })
  const reports = await Promise.all([1, 2, 3].map(() => second.report(runId, local)))
  for (const report of reports) expect(report).toMatchObject({ status: 'ended', state: { end: { value: 5 } } })
})

it('takes over a run whose instance has died', async () => {
  const dead = instance({ leaseMs: 60 }, () => new Promise(() => {}))
  const runId = await start(dead, '1 + 1')
  const other = instance()
  // The dead one no longer renews its lease.
  await dead.close()
  await expect.poll(async () => (await other.report(runId, local)).status).toBe('ended')
})

it('cancels a run, its calls and its cards', async () => {
  const runs = instance()
  const runId = await start(runs, 'await Promise.all([tools.s.hang(), tools.s.write({ x: "never" })])')
  await expect.poll(async () => (await inbox.open()).some(({ code }) => code?.runId === runId)).toBe(true)
  expect(await runs.cancel(runId, 'local')).toMatchObject({ state: { end: { code: 'code_cancelled' } } })
  expect((await inbox.open()).filter(({ code }) => code?.runId === runId)).toEqual([])
  expect(await runs.report(runId, local)).toMatchObject({ status: 'ended', state: { end: { code: 'code_cancelled' } } })
})

it('gives up a run that nobody decides about, and says so', async () => {
  const runs = instance({ expireMs: 100, watchMs: 60_000 })
  const runId = await start(runs, 'await tools.s.write({ x: "late" })')
  await expect.poll(async () => (await runs.report(runId, local)).state.end).toMatchObject({ code: 'code_expired' })
  expect((await inbox.open()).filter(({ code }) => code?.runId === runId)).toEqual([])
})

it('answers after a while that the program still runs', async () => {
  const runs = instance({ answerMs: 20 })
  const runId = await start(runs, 'await tools.s.hang()')
  expect(await runs.report(runId, local)).toMatchObject({ status: 'running' })
})

it('answers before the sandbox of the program is stopped, but is closed only after that', async () => {
  const { promise: stopped, resolve: letStop } = Promise.withResolvers<void>()
  const runs = instance({ answerMs: 60_000 }, async () => ({ ...localRealm(), stop: () => stopped }))
  const runId = await start(runs, '1 + 1')
  expect(await runs.report(runId, local)).toMatchObject({ status: 'ended', state: { end: { value: 2 } } })
  let isClosed = false
  const closing = runs.close().then(() => {
    isClosed = true
  })
  await new Promise(setImmediate)
  expect(isClosed).toBe(false)
  letStop()
  await closing
})

it('tells the caller that a program waits for a sandbox, and gives the place on when the first one has ended', async () => {
  const queue = new RealmQueue(localPlaces(1))
  const runs = instance({ answerMs: 20 }, (request) => queue.open(request, async () => localRealm()))
  const first = await start(runs, 'await tools.s.hang()')
  await runs.report(first, local)
  const second = await start(runs, '1 + 1')
  await expect.poll(async () => (await runs.report(second, local)).queued).toContain('waits for a sandbox')
  await runs.cancel(first, 'local')
  await expect.poll(() => runs.report(second, local)).toMatchObject({ status: 'ended', state: { end: { value: 2 } } })
})

// Checked: if starts of one owner look at the same time, all 30 begin.
it('begins no more runs of one owner than it may have, also if they start at the same time', async () => {
  const runs = instance({}, async ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
  const owned = (owner: string) => runs.start({ code: '1', asker: { owner, door: 'stdio' }, calls })
  const begun = await Promise.allSettled(Array.from({ length: 30 }, () => owned('eager')))
  expect(begun.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
  expect(begun.at(-1)).toMatchObject({ reason: { code: 'too_many_runs' } })
  expect(await owned('other')).toEqual(expect.any(String))
})

// Checked: with the backquotes, this program fails with '"" is not a function'.
it.each([
  ['```ts\nconst a = 1\na\n```', '\nconst a = 1\na'],
  ['\n ```typescript \nconst a = 1\n```\n\n', '\n \nconst a = 1'],
  ['```\n\n```', '\n'],
  ['```ts\n```', ''],
  ['```', '```'],
  ['`a`', '`a`'],
  ['const a = `\n```\n`', 'const a = `\n```\n`'],
  ['a\n```ts\nb\n```', 'a\n```ts\nb\n```']
])('takes the lines of backquotes off %j, and keeps the numbers of the other lines', (given, code) => {
  expect(newProgram({ code: given }).code).toBe(code)
})
