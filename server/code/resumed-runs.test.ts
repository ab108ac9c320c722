import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { AppError } from '../lib/errors.ts'
import { silentLogger } from '../lib/logger.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { CodeRuns, type CodeRunsOptions } from './code-runs.ts'
import { fakeEventLog } from './fake-event-log.ts'
import { ApprovalPending, type ProgramCalls } from './program-call.ts'
import type { RealmProcess } from './realms/code-channel.ts'
import { localRealm } from './realms/local-realm.fixture.ts'
import { outcomeOfRun } from './run-answer.ts'
import { isSameCall } from './run-log.ts'
import type { RunTimes } from './run-times.ts'

let store: { events: ReturnType<typeof fakeEventLog>; keyValues: ReturnType<typeof fakeKeyValueStore> }
let inbox: ApprovalInbox
let sent: unknown[]
const LIMITS = { MAX_SESSION_LOG_MB: 64, MAX_OWNER_LOG_MB: 1024, MAX_LOG_MB: 10_240 }
const opened: CodeRuns[] = []

const calls: ProgramCalls = {
  async run({ server, tool, args }, hooks) {
    const hash = JSON.stringify(args)
    if (tool === 'write' && !hooks.decided(hash))
      throw new ApprovalPending({ server, tool, args, hash, asker: { door: 'stdio' } })
    await hooks.beforeSending()
    sent.push(args.x)
    return { ok: true, value: sent.length }
  }
}
const local = { owner: 'local', calls }

function instance(times: Partial<RunTimes> = {}, openRealm: CodeRunsOptions['openRealm'] = async () => localRealm()) {
  const quick = { lingerMs: 10, pollMs: 2, answerMs: 5000, leaseMs: 300, watchMs: 20, retryMs: 10, ...times }
  const options = { openRealm, home: 'test', limits: LIMITS, logger: silentLogger, times: quick }
  const runs = new CodeRuns({ ...store, inbox, ...options })
  runs.follow(() => calls)
  opened.push(runs)
  return runs
}

async function waitingRun(runs: CodeRuns, code: string): Promise<string> {
  const runId = await runs.start({ code, timeoutMs: 20_000, asker: { owner: 'local', door: 'stdio' }, calls })
  expect(await runs.report(runId, local)).toMatchObject({ status: 'waiting' })
  await expect.poll(() => store.keyValues.get('code-runs', runId)).toMatchObject({ status: 'waiting' })
  return runId
}
const approve = async () => {
  for (const { id, hash } of await inbox.open()) await inbox.answer(id, hash, { approved: true })
}

beforeEach(() => {
  store = { events: fakeEventLog(), keyValues: fakeKeyValueStore() }
  inbox = new ApprovalInbox(store.keyValues)
  sent = []
})
afterEach(async () => {
  for (const runs of opened.splice(0)) await runs.close()
})

const died = (): RealmProcess => ({ ...localRealm(), exited: Promise.resolve('exited before it was ready') })
const missing = new AppError('unavailable', 'image_not_ready', 'Try again in a minute.')

it.each<[string, () => Promise<RealmProcess>]>([
  ['has no engine', () => Promise.reject(missing)],
  ['gets realms that die before they are ready', async () => died()],
  ['fails in an unknown way', () => Promise.reject(new Error('socket hang up'))]
])('sends the approved write after the instance that continues the run %s for a while', async (_, broken) => {
  const first = instance()
  const runId = await waitingRun(first, 'await tools.s.write({ x: 1 }); "done"')
  await first.close()
  await approve()
  let opens = 0
  const second = instance({}, () => (++opens < 6 ? broken() : Promise.resolve(localRealm())))
  await expect.poll(() => sent).toEqual([1])
  const report = await second.report(runId, local)
  expect(report).toMatchObject({ status: 'ended', state: { end: { ok: true, value: 'done' } } })
})

it('says why a run does not continue yet, and gives up when that lasts', async () => {
  const first = instance()
  const runId = await waitingRun(first, 'await tools.s.write({ x: 1 })')
  await first.close()
  await approve()
  const second = instance({ retryMs: 20, expireMs: 400 }, () => Promise.reject(missing))
  await expect.poll(async () => (await second.report(runId, local)).queued).toContain('Try again in a minute')
  await expect
    .poll(() => second.report(runId, local))
    .toMatchObject({ status: 'ended', state: { end: { code: 'image_not_ready' } } })
  expect(sent).toEqual([])
})

it('ends a run at once that fails before its first call', async () => {
  const runs = instance({}, () => Promise.reject(missing))
  const asker = { owner: 'local', door: 'stdio' } as const
  const runId = await runs.start({ code: '1', timeoutMs: 20_000, asker, calls })
  expect(await runs.report(runId, local)).toMatchObject({ state: { end: { code: 'image_not_ready' } } })
})

it('continues after the store could not be reached', async () => {
  const { append } = store.events
  let failures = 0
  store.events.append = (id, events, options) => {
    if (events.some(({ type }) => type === 'run:done') && failures++ === 0) throw new Error('no connection')
    return append(id, events, options)
  }
  const runs = instance()
  const asker = { owner: 'local', door: 'stdio' } as const
  const code = 'await tools.s.read({ x: "r" }); 7'
  const runId = await runs.start({ code, timeoutMs: 20_000, asker, calls })
  await expect.poll(() => runs.report(runId, local)).toMatchObject({ state: { end: { ok: true, value: 7 } } })
})

const asker = { owner: 'local', door: 'stdio' } as const
/** Writes that need no approval. */
const ruled: ProgramCalls = {
  async run({ args, tool }, hooks) {
    await hooks.beforeSending()
    sent.push(args.x ?? tool)
    if (tool === 'hang')
      await new Promise((_, reject) => hooks.signal.addEventListener('abort', () => reject(new Error('stopped'))))
    return { ok: true, value: null }
  }
}

it('sends nothing more once another instance has cancelled the run, and says so only then', async () => {
  const [driver, other] = [instance({ leaseMs: 900 }), instance({ leaseMs: 900 })]
  const code = 'for (let x = 0; ; x++) await tools.s.write({ x: x % 400 })'
  const runId = await driver.start({ code, timeoutMs: 20_000, asker, calls: ruled })
  await expect.poll(() => sent.length).toBeGreaterThan(3)
  await other.cancel(runId, 'local')
  const at = sent.length
  const { events } = store
  const before = await events.lastSeq(`code-run:${runId}`)
  await expect.poll(() => driver.report(runId, local)).toMatchObject({ status: 'ended' })
  expect(sent).toHaveLength(at)
  const after = (await events.read(`code-run:${runId}`)).slice(before)
  expect(after.filter(({ type }) => type === 'run:started')).toEqual([])
})

it('sends no call whose start is stored after the end of its run', async () => {
  const { append } = store.events
  const { promise: cancelled, resolve } = Promise.withResolvers<void>()
  let isStarting = false
  store.events.append = async (id, events, options) => {
    if (events.some(({ type }) => type === 'run:started')) {
      isStarting = true
      await cancelled
    }
    return append(id, events, options)
  }
  const [driver, other] = [instance(), instance()]
  const runId = await driver.start({ code: 'await tools.s.write({ x: 1 })', timeoutMs: 20_000, asker, calls: ruled })
  await expect.poll(() => isStarting).toBe(true)
  const cancelling = other.cancel(runId, 'local')
  await expect.poll(async () => (await store.events.read(`code-run:${runId}`)).at(-1)?.type).toBe('run:ended')
  resolve()
  await cancelling
  await expect.poll(() => driver.report(runId, local)).toMatchObject({ status: 'ended' })
  expect(sent).toEqual([])
})

it.each<[string, (runs: CodeRuns, other: CodeRuns, runId: string) => Promise<unknown>]>([
  ['takes too long', async (runs, _other, runId) => runs.report(runId, local)],
  ['is cancelled', (runs, _other, runId) => runs.cancel(runId, 'local')],
  ['is cancelled by another instance', (_runs, other, runId) => other.cancel(runId, 'local')]
])('names the calls with unknown outcome of a run that %s', async (how, end) => {
  const [runs, other] = [instance(), instance()]
  const timeoutMs = how === 'takes too long' ? 1000 : 20_000
  const code = 'await tools.crm.done({ x: 1 }); await tools.crm.hang({ to: "ada" })'
  const runId = await runs.start({ code, timeoutMs, asker, calls: ruled })
  await expect.poll(() => sent).toEqual([1, 'hang'])
  await end(runs, other, runId)
  await expect.poll(() => runs.report(runId, local)).toMatchObject({ status: 'ended' })
  const { error } = outcomeOfRun((await runs.report(runId, local)).state)
  expect(error).toMatchObject({
    message: expect.stringContaining('Outcome unknown, because the program ended: crm.hang({"to":"ada"}) on line 1.')
  })
})

it('runs what was approved in time, although it is continued after its day', async () => {
  const first = instance({ expireMs: 300 })
  const runId = await waitingRun(first, 'await tools.s.write({ x: "in time" }); 5')
  await first.close()
  await approve()
  await expect.poll(() => inbox.open()).toEqual([])
  const { expiresAt } = (await store.keyValues.get('code-runs', runId)) as { expiresAt: number }
  await expect.poll(() => Date.now()).toBeGreaterThan(expiresAt)
  // The page lists the cards meanwhile.
  await inbox.open()
  const second = instance({ expireMs: 300 })
  const report = await second.report(runId, local)
  expect(report).toMatchObject({ status: 'ended', state: { end: { ok: true, value: 5 } } })
  expect(sent).toEqual(['in time'])
})

it('does not end a run that another instance drives, although its day is over', async () => {
  const hang = 'await tools.s.hang()'
  const [driver, other] = [instance({ expireMs: 50 }), instance({ expireMs: 50 })]
  const runId = await driver.start({ code: hang, timeoutMs: 20_000, asker, calls: ruled })
  const { expiresAt } = (await store.keyValues.get('code-runs', runId)) as { expiresAt: number }
  await expect.poll(() => Date.now()).toBeGreaterThan(expiresAt + 100)
  expect(await other.report(runId, local, 10)).toMatchObject({ status: 'running' })
})

it('takes a server and a tool with a dot in their names for another call than those that are written the same', () => {
  const call = (server: string, tool: string) => ({ n: 1, kind: 'tool' as const, server, tool, args: {}, line: 1 })
  expect(isSameCall(call('a.b', 'c'), call('a', 'b.c'))).toBe(false)
  expect(isSameCall(call('a.b', 'c'), { ...call('a.b', 'c'), line: 2 })).toBe(true)
})

it('reads the log of a waiting or ended run once for each poll', async () => {
  const first = instance()
  const runId = await waitingRun(first, 'await tools.s.write({ x: 1 })')
  await first.close()
  const second = instance({ watchMs: 60_000 })
  const reads = vi.spyOn(store.events, 'read')
  const loads = () => reads.mock.calls.filter(([, options]) => !options?.after).length
  expect(await second.report(runId, local)).toMatchObject({ status: 'waiting' })
  expect(loads()).toBe(1)
  await second.cancel(runId, 'local')
  reads.mockClear()
  expect(await second.report(runId, local)).toMatchObject({ status: 'ended' })
  expect(loads()).toBe(1)
})

it('gives each approval its whole time', async () => {
  const runs = instance({ expireMs: 1500 })
  const code = 'await tools.s.write({ x: 1 }); await tools.s.write({ x: 2 })'
  const runId = await waitingRun(runs, code)
  const [first] = await inbox.open()
  await expect.poll(() => Date.now()).toBeGreaterThan((first?.expiresAt ?? 0) - 700)
  await approve()
  await expect.poll(() => sent).toEqual([1])
  await expect.poll(async () => (await inbox.open()).length).toBe(1)
  const [second] = await inbox.open()
  expect(second?.expiresAt).toBeGreaterThan((first?.expiresAt ?? 0) + 500)
  const { expiresAt } = await runs.report(runId, local)
  expect(expiresAt).toBeGreaterThanOrEqual(second?.expiresAt ?? Number.POSITIVE_INFINITY)
})
