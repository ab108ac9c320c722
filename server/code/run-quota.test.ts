import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../lib/logger.ts'
import { ApprovalInbox } from '../policy/approval-inbox.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { CodeRuns } from './code-runs.ts'
import { fakeEventLog } from './fake-event-log.ts'
import { ApprovalPending, type ProgramCalls } from './program-call.ts'
import { localRealm } from './realms/local-realm.fixture.ts'
import type { RunLimits } from './run-quota.ts'

const MB = 1024 * 1024
const LARGE = 'x'.repeat(300_000)
let events: ReturnType<typeof fakeEventLog>
let runs: CodeRuns

const calls: ProgramCalls = {
  async run({ server, tool }, hooks) {
    if (tool === 'unknown') throw new Error('no such tool')
    if (tool === 'write') throw new ApprovalPending({ server, tool, args: {}, hash: 'h', asker: { door: 'stdio' } })
    await hooks.beforeSending()
    return { ok: true, value: LARGE }
  }
}

function open(limits: Partial<RunLimits>): void {
  const keyValues = fakeKeyValueStore()
  events = fakeEventLog()
  runs = new CodeRuns({
    ...{ events, keyValues, inbox: new ApprovalInbox(keyValues), logger: silentLogger },
    openRealm: async () => localRealm(),
    home: 'test',
    limits: { MAX_SESSION_LOG_MB: 64, MAX_OWNER_LOG_MB: 1024, MAX_LOG_MB: 10_240, ...limits },
    times: { lingerMs: 1, pollMs: 1, watchMs: 60_000 }
  })
}
beforeEach(() => open({}))
afterEach(() => runs.close())

const start = (code: string, owner = 'me') =>
  runs.start({ code, timeoutMs: 60_000, asker: { owner, door: 'stdio' }, calls })
const report = (runId: string, owner = 'me') => runs.report(runId, { owner, calls })
const result = async (code: string) => (await report(await start(code))).state.end

describe('the log of a run', () => {
  // Checked: without the limits, all 30 calls are made, and the log has 9 MB.
  it('has a limit: the next call is not made, and the program gets an error that says so', async () => {
    open({ MAX_SESSION_LOG_MB: 1 })
    const end = await result(`
      let [made, code] = [0, '']
      try { for (; made < 30; made++) await tools.s.read() } catch (error) { code = error.code }
      return [made, code]`)
    expect(end).toEqual({ ok: true, value: [expect.any(Number), 'quota_run_log'] })
    expect(await events.bytes()).toBeLessThan(2 * MB)
  })

  // Checked: the arguments of calls that never leave counted nowhere.
  it('ends the run if the program goes on regardless', async () => {
    open({ MAX_SESSION_LOG_MB: 1 })
    const end = await result(`
      const x = 'x'.repeat(900_000)
      for (let n = 0; n < 400; n++) await tools.s.unknown({ n, x }).catch(() => {})`)
    expect(end).toMatchObject({ ok: false, code: 'quota_run_log' })
    expect(await events.bytes()).toBeLessThan(20 * MB)
  })

  it('counts for its owner: ended runs make room, open ones do not, and others are not affected', async () => {
    open({ MAX_OWNER_LOG_MB: 2.8 })
    const ended = await start('await tools.s.read(); 1')
    await report(ended)
    const waiting = await start('await tools.s.read(); await tools.s.read(); await tools.s.write()')
    expect(await report(waiting)).toMatchObject({ status: 'waiting' })
    await report(await start('await tools.s.read(); await tools.s.write()'))
    await expect(report(ended)).rejects.toMatchObject({ code: 'unknown_run' })
    await expect(start('1')).rejects.toMatchObject({ code: 'quota_owner_runs' })
    expect(await report(waiting)).toMatchObject({ status: 'waiting' })
    await start('1', 'other')
    await runs.cancel(waiting, 'me')
    await start('1')
  })

  it('counts in the total of all owners', async () => {
    open({ MAX_LOG_MB: 2 })
    await report(await start('await tools.s.read(); await tools.s.read(); await tools.s.write()'))
    await expect(start('1', 'other')).rejects.toMatchObject({ code: 'quota_runs' })
  })
})
