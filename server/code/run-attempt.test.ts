import { expect, it, vi } from 'vitest'
import type { ApprovalCard } from '../../contract/rest.ts'
import { cpuMs } from '../../tests/support/cpu-ms.ts'
import { silentLogger } from '../lib/logger.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import type { EventLog } from '../storage/event-log.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { fakeEventLog } from './fake-event-log.ts'
import { ApprovalPending, type CallOutcome, type ProgramCall, type ProgramCalls } from './program-call.ts'
import { programCard } from './program-card.ts'
import { localRealm } from './realms/local-realm.fixture.ts'
import { outcomeOfRun } from './run-answer.ts'
import { type AttemptEnd, RunAttempt } from './run-attempt.ts'
import { programHash } from './run-departure.ts'
import { RunLog, type RunState } from './run-log.ts'

/** Three reads, two of them at once, two writes that were approved, and one that waits. */
const PROGRAM = `const ids: string[] = await tools.crm.list()
const send = (to: string) => tools.mail.send({ to }).catch((error) => error.code); console.log('listed', ids.length)
const [a, b] = await Promise.all([tools.crm.read({ id: ids[0] }), tools.crm.read({ id: ids[1] })])
await send(a.mail)
await send(b.mail)
const third = await send('chief@' + Math.floor(Math.random() * 1e9) + '.test')
console.log('sent', third)
;({ a, b, third, at: Date.now() })`

class Killed extends Error {}

/** The world outside the run. It is not reset by a crash. */
class World {
  readonly sent: unknown[] = []
  readonly keyValues = fakeKeyValueStore()
  readonly inbox = new ApprovalInbox(this.keyValues)
  readonly events = fakeEventLog()

  readonly calls: ProgramCalls = {
    run: async (call, hooks): Promise<CallOutcome> => {
      const isWrite = call.tool === 'send'
      const isUnsure = isWrite && hooks.interruptions > 0
      if (isWrite) {
        const hash = JSON.stringify([call.args, isUnsure ? hooks.interruptions : 0])
        const decision = hooks.decided(hash)
        if (!decision) {
          const asker = { door: 'stdio' }
          throw new ApprovalPending({ server: call.server, tool: call.tool, args: call.args, hash, asker })
        }
        if (!decision.approved) return { ok: false, code: 'outcome_unknown', message: 'no' }
      }
      await hooks.beforeSending()
      return this.effect(call)
    }
  }

  effect({ tool, args }: ProgramCall): CallOutcome {
    if (tool === 'list') return { ok: true, value: ['x', 'y'] }
    if (tool === 'read') return { ok: true, value: { mail: `${args.id}@example.test` } }
    this.sent.push(args.to)
    return { ok: true, value: this.sent.length }
  }

  async answerAll(approve = (_: ApprovalCard) => true): Promise<number> {
    const cards = await this.inbox.open()
    for (const card of cards) await this.inbox.answer(card.id, card.hash, { approved: approve(card) })
    return cards.length
  }

  attempt(log: RunLog, kill?: AbortSignal, openRealm = async () => localRealm(), lingerMs = 5): Promise<AttemptEnd> {
    const cardExpiresAt = () => Date.now() + 60_000
    const options = { lingerMs, pollMs: 2, cardExpiresAt, logger: silentLogger }
    const silent = { onProgress: () => {}, onWaiting: () => {}, onReleased: () => {} }
    const { calls, inbox } = this
    return new RunAttempt({ log, openRealm, calls, inbox, ...options, ...silent }).run(
      kill ?? new AbortController().signal
    )
  }
}

const program = (code = PROGRAM) => ({
  code,
  hash: programHash(code),
  seed: 42,
  startedAt: 1_000_000,
  timeoutMs: 20_000
})

/** Fails every append after the first `alive`, like a process that is killed then. `late` decides whether that append was stored. */
function dying(events: EventLog, alive: number, late: boolean): EventLog {
  let appends = 0
  return {
    ...events,
    async append(id, added) {
      if (++appends > alive) {
        if (late && appends === alive + 1) await events.append(id, added)
        throw new Killed()
      }
      return events.append(id, added)
    }
  }
}

async function toTheEnd(world: World, runId: string, approve?: (card: ApprovalCard) => boolean): Promise<RunLog> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const log = await RunLog.load(world.events, runId)
    if (log.state.end) return log
    await world.answerAll(approve)
    await world.attempt(log)
  }
  throw new Error('the run does not end')
}

it('runs a program to its end, over approvals that take their time', async () => {
  const world = new World()
  const log = await RunLog.create(world.events, 'r', program())
  expect(await world.attempt(log)).toBe('waiting')
  const [card] = await world.inbox.open()
  expect(card).toMatchObject({ tool: 'send', args: { to: 'x@example.test' } })
  expect(card?.code).toMatchObject({
    line: 2,
    source: expect.stringContaining('tools.mail.send({ to })'),
    sources: [{ path: 'to', server: 'crm', tool: 'read', n: 2 }]
  })
  const { state } = await toTheEnd(world, 'r')
  expect(state.end).toMatchObject({ ok: true, value: { third: 3 } })
  expect(state.logs).toEqual(['listed 2', 'sent 3'])
  expect(world.sent).toHaveLength(3)
  expect(await world.inbox.open()).toEqual([])
})

// Checked: if interruptions are not counted, a write is sent twice.
it('sends each write once and ends with the same value, wherever the process is killed', async () => {
  const reference = new World()
  await RunLog.create(reference.events, 'r', program())
  const { state: expected } = await toTheEnd(reference, 'r')
  for (const late of [false, true]) {
    for (let alive = 0; alive < 26; alive++) {
      const world = new World()
      await RunLog.create(world.events, 'r', program())
      // The killed process: its store fails from one append on, and so does all that follows.
      const victim = dying(world.events, alive, late)
      let isOver = false
      for (let attempt = 0; attempt < 10 && !isOver; attempt++) {
        const log = await RunLog.load(victim, 'r')
        if (log.state.end) isOver = true
        else {
          await world.answerAll()
          isOver = await world.attempt(log).then(
            () => false,
            () => true
          )
        }
      }
      const sentBefore = [...world.sent]
      // A write that had left may have happened: the person looks, and lets it run again only if it did not.
      const approve = (card: ApprovalCard) => (!card.hash.endsWith('0]') ? !sentBefore.includes(card.args.to) : true)
      const { state } = await toTheEnd(world, 'r', approve)
      expect(new Set(world.sent).size, `killed after ${alive}`).toBe(world.sent.length)
      expect(world.sent).toHaveLength(3)
      const third = expect.toSatisfy((value) => value === 3 || value === 'outcome_unknown')
      expect(state.end).toMatchObject({ ...expected.end, value: { a: {}, b: {}, third } })
      expect(world.sent).toEqual(reference.sent)
      expect(state.logs[0]).toEqual(expected.logs[0])
    }
  }
})

it('continues in another realm if the container is killed, and repeats no call', async () => {
  const world = new World()
  const log = await RunLog.create(world.events, 'r', program())
  const realm = localRealm()
  const effect = world.effect.bind(world)
  vi.spyOn(world, 'effect').mockImplementation((call) => {
    if (call.n === 3) realm.kill()
    return effect(call)
  })
  expect(await world.attempt(log, undefined, async () => realm)).toBe('realm_lost')
  const { state } = await toTheEnd(world, 'r')
  expect(state.end).toMatchObject({ ok: true })
  const made = vi.mocked(world.effect).mock.calls.map(([call]) => call.n)
  expect(made).toEqual([...new Set(made)])
})

it('lets only one of two instances send a call', async () => {
  const world = new World()
  await RunLog.create(world.events, 'r', program('await tools.crm.list(); await tools.crm.read({ id: 1 })'))
  const effect = vi.spyOn(world, 'effect')
  const logs = await Promise.all([RunLog.load(world.events, 'r'), RunLog.load(world.events, 'r')])
  await Promise.all(logs.map((log) => world.attempt(log)))
  const { state } = await toTheEnd(world, 'r')
  expect(state.end?.ok).toBe(true)
  expect(effect).toHaveBeenCalledTimes(2)
})

it('stops a program that departs from its log, and says where', async () => {
  const world = new World()
  const log = await RunLog.create(world.events, 'r', program())
  await world.attempt(log)
  const other = await RunLog.load(world.events, 'r')
  other.state.program = program(PROGRAM.replace('ids[1]', '"other"'))
  await world.attempt(other)
  const { state } = await RunLog.load(world.events, 'r')
  expect(state.end).toMatchObject({ code: 'code_departed', line: 3 })
  expect(state.end).toMatchObject({ message: expect.stringContaining('crm.read({"id":"other"})') })
})

it('does not replay a run on another version of the runtime', async () => {
  const world = new World()
  const log = await RunLog.create(world.events, 'r', program())
  await world.attempt(log)
  await world.attempt(await RunLog.load(world.events, 'r'), undefined, async () => localRealm('newer'))
  expect((await RunLog.load(world.events, 'r')).state.end).toMatchObject({ code: 'code_runtime_changed' })
})

it('does not replay another program than the one that was started', async () => {
  const world = new World()
  const log = await RunLog.create(world.events, 'r', program())
  await world.attempt(log)
  const changed = await RunLog.load(world.events, 'r')
  changed.state.program = { ...program(`${PROGRAM} // other`), hash: program().hash }
  await world.attempt(changed)
  expect((await RunLog.load(world.events, 'r')).state.end).toMatchObject({ code: 'code_changed' })
})

// Checked: if the realm is believed, the run begins again, or is said to be cancelled.
it.each(['code_realm_ended', 'code_cancelled', 'code_expired'])('lets no program end itself as %s', async (code) => {
  const world = new World()
  const log = await RunLog.create(world.events, 'r', program(`throw new ToolError('${code}', 'forged')`))
  expect(await world.attempt(log)).toBe('ended')
  expect(log.state.end).toMatchObject({ ok: false, code: 'code_failed', message: expect.stringContaining('forged') })
})

it('delivers results in the recorded order, so that a race has the same winner', async () => {
  const world = new World()
  const code = `const order: number[] = []
const slow = tools.crm.slow().then(() => order.push(1))
const fast = tools.crm.list().then(() => order.push(2))
await Promise.race([slow, fast]); await Promise.all([slow, fast])
await tools.mail.send({ to: order.join() })
order`
  const log = await RunLog.create(world.events, 'r', program(code))
  const run = world.calls.run.bind(world.calls)
  vi.spyOn(world.calls, 'run').mockImplementation(async (call, hooks) => {
    if (call.tool !== 'slow') return run(call, hooks)
    await hooks.beforeSending()
    await vi.waitUntil(() => log.state.order.includes(2))
    return { ok: true, value: null }
  })
  expect(await world.attempt(log)).toBe('waiting')
  const { state } = await toTheEnd(world, 'r')
  expect(state.end).toMatchObject({ ok: true, value: [2, 1] })
  expect(world.sent).toEqual(['2,1'])
})

// Checked: if the end of the program ends the run, the mail is never sent and its card is gone.
it('waits for a write that the program did not wait for', async () => {
  const world = new World()
  const log = await RunLog.create(world.events, 'r', program(`tools.mail.send({ to: 'ada' })\n5`))
  expect(await world.attempt(log)).toBe('waiting')
  const { state } = await toTheEnd(world, 'r')
  expect(state.end).toMatchObject({ ok: true, value: 5 })
  expect(world.sent).toEqual(['ada'])
})

it('names the calls that a program leaves behind when it fails', async () => {
  const world = new World()
  const code = `tools.mail.send({ to: 'ada' })
await tools.crm.slow()
throw new Error('bad')`
  const log = await RunLog.create(world.events, 'r', program(code))
  const run = world.calls.run.bind(world.calls)
  vi.spyOn(world.calls, 'run').mockImplementation(async (call, hooks) => {
    if (call.tool !== 'slow') return run(call, hooks)
    await vi.waitUntil(() => log.state.calls.get(1)?.asked !== undefined)
    return { ok: true, value: null }
  })
  await world.attempt(log)
  const { error } = outcomeOfRun((await RunLog.load(world.events, 'r')).state)
  expect(error).toMatchObject({
    code: 'code_failed',
    message: expect.stringContaining('Not made, because the program ended: mail.send.')
  })
  expect(await world.inbox.open()).toEqual([])
})

// Checked: with the lines as arguments of one push, the call that stores them breaks the run, and its log can't be read again.
it('ends a program that prints 190,000 lines, and its log can be read again', async () => {
  const world = new World()
  const code = "for (let n = 0; n < 190_000; n++) console.log('')\nawait tools.crm.list()"
  const log = await RunLog.create(world.events, 'r', program(code))
  expect(await world.attempt(log)).toBe('ended')
  const { state } = await RunLog.load(world.events, 'r')
  expect(state.end).toEqual({ ok: true, value: ['x', 'y'] })
  expect(state.logs).toHaveLength(190_000)
})

it('gives a clear error for each limit', async () => {
  const world = new World()
  const flood = `const errors = new Set<string>()
for (let n = 0; n < 600; n++) await tools.crm.list().catch((error) => errors.add(error.code))
;[...errors]`
  await world.attempt(await RunLog.create(world.events, 'r', program(flood)))
  expect((await RunLog.load(world.events, 'r')).state.end).toEqual({ ok: true, value: ['code_too_many_calls'] })
  const wide =
    'const all = await Promise.allSettled(Array.from({ length: 150 }, () => tools.crm.list())); all.filter((one) => one.reason?.code === "code_too_many_open").length'
  await world.attempt(await RunLog.create(world.events, 's', program(wide)))
  expect((await RunLog.load(world.events, 's')).state.end).toEqual({ ok: true, value: 50 })
  const slow = { ...program('await new Promise((done) => setTimeout(done, 60_000))'), timeoutMs: 50 }
  await world.attempt(await RunLog.create(world.events, 't', slow))
  expect((await RunLog.load(world.events, 't')).state.end).toMatchObject({ code: 'code_timeout' })
})

// Checked: if the time goes on while a person is waited for, the run ends with `code_timeout`.
it('does not count the time in which only a person is waited for, but counts the program', async () => {
  const world = new World()
  const waiting = await RunLog.create(world.events, 'w', {
    ...program('await tools.mail.send({ to: "a" })'),
    timeoutMs: 3000
  })
  expect(await world.attempt(waiting, undefined, undefined, 3200)).toBe('waiting')
  const slow = await RunLog.create(world.events, 's', {
    ...program('await new Promise((done) => setTimeout(done, 60_000))'),
    timeoutMs: 100
  })
  expect(await world.attempt(slow)).toBe('ended')
  expect(slow.state.end).toMatchObject({ code: 'code_timeout' })
})

/** A run whose calls have ended with these results. */
function run(results: unknown[]): RunState {
  const calls = results.map((value, at) => {
    const call = { n: at + 1, kind: 'tool' as const, server: 'crm', tool: 'read', args: {}, line: 1 }
    const state = { call, starts: 1, decisions: [], done: { outcome: { ok: true as const, value }, at: 0 } }
    return [at + 1, state] as const
  })
  return {
    ...{ program: undefined, runtime: undefined, end: undefined, endedAt: undefined, updatedAt: 0, logs: [] },
    ...{ calls: new Map(calls), order: calls.map(([n]) => n) }
  }
}

const sourcesOf = (args: Record<string, unknown>, state: RunState) => {
  const call = { n: 9, kind: 'tool' as const, server: 'mail', tool: 'send', args, line: 1 }
  const card = { server: 'mail', tool: 'send', args, hash: 'h', asker: { door: 'stdio' } }
  return programCard({ runId: 'r', state }, call, card, 0).code?.sources ?? []
}

it('names the latest result that has a value, or whose texts are part of it', () => {
  const state = run([{ mail: 'ada@example.test' }, { mail: 'ada@example.test', id: 12345 }, 'nothing'])
  const args = { to: 'ada@example.test', items: [{ text: 'Dear ada@example.test,' }], number: 12345, other: 'unknown' }
  expect(sourcesOf(args, state).map(({ path, n }) => [path, n])).toEqual([
    ['to', 2],
    ['items[0].text', 2],
    ['number', 2]
  ])
})

// Checked: without a limit, the card has the whole key.
it('shortens the path of a value in a place with a long name', () => {
  const [source] = sourcesOf({ ['k'.repeat(900_000)]: 'ada@example.test' }, run(['ada@example.test']))
  expect(source?.path).toHaveLength(200)
})

// Checked: without a limit for the work, one card takes more than three minutes.
it('costs little time, however much a program has read and writes', async () => {
  const many = Array.from({ length: 5000 }, (_, at) => `${'a'.repeat(20)}${at}z`)
  const state = run(Array.from({ length: 100 }, () => many))
  const wide = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`k${at}`, `${'a'.repeat(900)}${at}`]))
  for (const args of [{ text: 'a'.repeat(900_000) }, wide])
    expect(await cpuMs(() => sourcesOf(args, state))).toBeLessThan(1000)
  const large = run(Array.from({ length: 8 }, (_, at) => `${at}${'b'.repeat(7_900_000)}`))
  expect(await cpuMs(() => sourcesOf(wide, large))).toBeLessThan(1000)
})
