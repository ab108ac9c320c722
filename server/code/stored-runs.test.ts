import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLogger } from '../lib/logger.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import type { Json } from '../storage/key-value-store.ts'
import { CodeRuns } from './code-runs.ts'
import { fakeEventLog } from './fake-event-log.ts'
import { ApprovalPending, type ProgramCalls } from './program-call.ts'
import { localRealm } from './realms/local-realm.fixture.ts'
import { StoredRuns } from './stored-runs.ts'

const LIMITS = { MAX_SESSION_LOG_MB: 64, MAX_OWNER_LOG_MB: 1024, MAX_LOG_MB: 10_240 }
const TIMES = { lingerMs: 10, pollMs: 2, answerMs: 5000, leaseMs: 20_000, watchMs: 20 }
let store: { events: ReturnType<typeof fakeEventLog>; keyValues: ReturnType<typeof fakeKeyValueStore> }
let inbox: ApprovalInbox
let opened: () => CodeRuns
let gateway: CodeRuns
/** In another process, without programs of its own. */
let shown: StoredRuns
let made: string[]

const calls: ProgramCalls = {
  async run({ server, tool, args }, hooks) {
    if (tool === 'write') throw new ApprovalPending({ server, tool, args, hash: 'h', asker: { door: 'stdio' } })
    await hooks.beforeSending()
    made.push(tool)
    return { ok: true, value: made.length }
  }
}

beforeEach(() => {
  store = { events: fakeEventLog(), keyValues: fakeKeyValueStore() }
  inbox = new ApprovalInbox(store.keyValues)
  made = []
  const openRealm = async () => localRealm()
  opened = () =>
    new CodeRuns({
      ...{ ...store, inbox, openRealm, home: 'test', limits: LIMITS, logger: silentLogger, times: TIMES }
    })
  gateway = opened()
  shown = new StoredRuns({ ...store, inbox })
})
afterEach(() => gateway.close())

const start = (code: string, owner = 'local') =>
  gateway.start({ code, timeoutMs: 20_000, asker: { owner, door: 'stdio', client: 'cli/1' }, calls })
const everyone = () => true

it('lists what runs and waits, with its client, reason and calls, and nothing that has ended', async () => {
  const waiting = await start('await tools.s.read()\nawait tools.s.write({})')
  const running = await start('for (;;) await new Promise((done) => setTimeout(done, 5))')
  const ended = await start('1 + 1')
  await gateway.report(ended, { owner: 'local', calls })
  const runs = async () => Object.fromEntries((await shown.list(everyone)).map((run) => [run.runId, run]))
  await expect.poll(async () => (await runs())[waiting]?.calls).toBe(2)
  expect(await runs()).toEqual({
    [waiting]: expect.objectContaining({
      ...{ client: 'cli/1', door: 'stdio', status: 'waiting', reason: '1 call waits for approval.' },
      head: 'await tools.s.read()\nawait tools.s.write({})'
    }),
    [running]: expect.objectContaining({ status: 'running', calls: 0 })
  })
})

it('says that a program does not go on if its process is gone', async () => {
  const runId = await start('await tools.s.write({})')
  await expect.poll(async () => (await shown.list(everyone))[0]?.reason).toBe('1 call waits for approval.')
  await gateway.close()
  const [card] = await inbox.open()
  await inbox.answer(card?.id ?? '', 'h', { approved: true })
  const [run] = await shown.list(everyone)
  expect(run).toMatchObject({ runId, reason: expect.stringContaining('No process continues it now.') })
})

it('ends a program that another process drives, so that it makes no more calls', async () => {
  const runId = await start('for (;;) { await tools.s.read(); await new Promise((done) => setTimeout(done, 1)) }')
  await expect.poll(() => made.length).toBeGreaterThan(2)
  await shown.cancel(runId, everyone)
  const before = made.length
  expect(await shown.list(everyone)).toEqual([])
  const { state } = await gateway.report(runId, { owner: 'local', calls })
  expect(state.end).toMatchObject({ code: 'code_cancelled' })
  expect(made).toHaveLength(before)
})

it('takes the cards of a program that it ends out of the inbox', async () => {
  const runId = await start('await tools.s.write({})')
  await expect.poll(() => inbox.open()).toHaveLength(1)
  await shown.cancel(runId, everyone)
  expect(await inbox.open()).toEqual([])
  await shown.cancel(runId, everyone)
})

it('neither shows nor ends the programs of another owner', async () => {
  const runId = await start('await tools.s.write({})', 'ann')
  const isBen = (owner: string) => owner === 'ben'
  expect(await shown.list(isBen)).toEqual([])
  for (const id of [runId, 'nothing', 'chat-x'])
    await expect(shown.cancel(id, isBen)).rejects.toMatchObject({ code: 'unknown_run' })
  expect(await shown.list((owner) => owner === 'ann')).toMatchObject([{ runId }])
})

it.each(['run:created', 'the list entry'])(
  'leaves nothing of a program whose process died while it stored %s',
  async (died) => {
    const { append } = store.events
    const { add } = store.keyValues
    let goOn = () => {}
    const standing = new Promise<void>((done) => {
      goOn = done
    })
    let isStanding = false
    const stand = async () => {
      isStanding = true
      await standing
    }
    if (died === 'run:created')
      store.events.append = async (id, added) => {
        if (added[0]?.type === died) await stand()
        return append(id, added)
      }
    else
      store.keyValues.add = async (...given) => {
        await stand()
        return add(...given)
      }
    const starting = start('await tools.s.read()').catch((error) => error)
    await expect.poll(() => isStanding).toBe(true)
    expect(await store.events.bytes()).toBe(0)
    Object.assign(store.events, { append })
    Object.assign(store.keyValues, { add })
    // The lease of the one that died is over.
    for (const { key, value } of await store.keyValues.list('code-runs'))
      await store.keyValues.replace('code-runs', key, value, { ...(value as Record<string, Json>), leaseUntil: 0 })
    const heir = opened()
    heir.follow(() => calls)
    await expect.poll(() => shown.list(everyone)).toEqual([])
    if (died === 'run:created') {
      // It was not dead, and can't begin what was given up.
      goOn()
      expect(await starting).toMatchObject({ code: 'event_exists' })
    }
    expect(made).toEqual([])
    await heir.close()
  }
)

it('ends a program that was never stored for the person who cancels it', async () => {
  const { append } = store.events
  store.events.append = () => new Promise(() => {})
  void start('await tools.s.read()')
  await expect.poll(() => shown.list(everyone)).toHaveLength(1)
  store.events.append = append
  const [run] = await shown.list(everyone)
  await shown.cancel(run?.runId ?? '', everyone)
  expect(await shown.list(everyone)).toEqual([])
})
