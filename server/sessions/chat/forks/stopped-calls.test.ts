import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { ApprovalMode } from '../../../../contract/effects/modes.ts'
import { createPolicy } from '../../../policy/approval-policy.ts'
import { FakeConnection } from '../../../sandbox/fake-engine.ts'
import { type FakeSessions, fakeSessions } from '../../sandboxes/fake-sessions.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from '../fake-chat.ts'

let sessions: FakeSessions
let fake: FakeChat

beforeEach(async () => {
  sessions = await fakeSessions()
  vi.spyOn(FakeConnection.prototype, 'callTool')
})
afterEach(async () => {
  vi.restoreAllMocks()
  await fake.close()
  await sessions.close()
})

const policy = createPolicy([{ server: 'workspace', glob: '*', rule: 'allow' }])

async function open(mode: ApprovalMode, more: FakeChatOptions = {}): Promise<void> {
  const manager = await sessions.start('a')
  fake = await fakeChat({
    model: (_, step) => [step === 0 ? called('write_file', '{"path":"a.txt","content":"late"}', 'c1') : said('ok')],
    options: { mode },
    on: { store: sessions.store, sessions: manager },
    ...more
  })
  await manager.run('s1', async () => {})
}

/** The call is over, and nothing of it has run. */
async function isNotRun(): Promise<void> {
  await vi.waitFor(async () => {
    const { calls, turnId } = await fake.chat.transcript('s1')
    expect(turnId).toBeNull()
    expect(calls.c1?.result ?? calls.c1?.decision?.approved === false).toBeTruthy()
  })
  expect((await fake.log()).map(({ type }) => type)).not.toContain('tool:started')
  expect(FakeConnection.prototype.callTool).not.toHaveBeenCalled()
}

// Seen before: the call began in the fork, and in a review its changes waited for a decision.
it.each(['preview', 'review'] as const)(
  'starts nothing in a fork if the turn was stopped while that was opened (%s)',
  async (mode) => {
    await open(mode)
    const { create } = sessions.engine
    vi.spyOn(sessions.engine, 'create').mockImplementationOnce(async (owner) => {
      await fake.chat.cancel('s1')
      return create.call(sessions.engine, owner)
    })
    await fake.chat.send('s1', { text: 'go' })
    await fake.until('turn:end')
    await isNotRun()
  }
)

// Seen before: the call got the signal of the next turn, and ran.
it('starts nothing if the turn was stopped while the quota was checked', async () => {
  let isStopped = false
  await open('ask', {
    policy,
    checkQuota: async () => {
      const { calls } = await fake.chat.transcript('s1')
      if (!calls.c1 || isStopped) return
      isStopped = true
      await fake.chat.cancel('s1')
    }
  })
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('turn:end')
  await isNotRun()
})
