import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { AppError } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/logger.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import { FakeContentStore } from '../../storage/fake-content-store.ts'
import { serverStopped, stopped } from '../turns/turn-events.ts'
import type { LiveSession } from './live-session.ts'
import { journal, runSandboxTool } from './run-sandbox-tool.ts'
import { SessionEvents } from './session-events.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const contents = new FakeContentStore()
const ok = { content: [{ type: 'text', text: 'done' }] }

/** A session whose log takes no result for a while. */
function open(awayMs = 0) {
  const stored: NewEvent[] = []
  const back = Date.now() + awayMs
  const events = new SessionEvents(
    {
      events: {
        async append(_, list) {
          if (list[0]?.type === 'tool:result' && Date.now() < back)
            throw new AppError('unavailable', 'store_unavailable', 'The store is away.')
          stored.push(...list)
          return []
        },
        read: async (_, { after = 0 } = {}) => stored.slice(after).map((event, i) => ({ ...event, seq: i + 1, at: 0 })),
        lastSeq: async () => stored.length,
        bytes: async () => 0,
        remove: async () => {}
      },
      publish: () => {},
      checkpoints: contents,
      logger: silentLogger
    },
    's'
  )
  const results = () => stored.filter(({ type }) => type === 'tool:result').map(({ data }) => data)
  return { results, events, session: { epoch: 1, events, runningCalls: new Set<string>() } }
}

it('stores the result of a call as soon as a store that was away is back', async () => {
  const { session, results } = open(20_000)
  const call = journal(session, 'c', async () => ok)
  await vi.advanceTimersByTimeAsync(25_000)
  expect(await call).toBe(ok)
  expect(results()).toEqual([{ callId: 'c', isError: false, ...ok }])
})

it('never tells of a call that succeeded as one that failed, however long the store is away', async () => {
  const { session, results, events } = open(35_000)
  const call = journal(session, 'c', async () => ok)
  const refused = expect(call).rejects.toMatchObject({ code: 'store_unavailable' })
  await vi.advanceTimersByTimeAsync(70_000)
  await refused
  expect(results()).toEqual([])
  await events.reportInterrupted(1, session.runningCalls)
  expect(results()).toMatchObject([{ callId: 'c', isError: true, outcome: 'unknown', interruptedBy: 'server' }])
})

it.each([
  ['child_lost', true, 'unknown'],
  ['child_timeout', true, 'unknown'],
  ['child_answer_invalid', true, 'unknown'],
  ['call_timeout', undefined, 'unknown'],
  ['child_lost', false, undefined],
  ['child_refused', true, undefined]
])('of a server that fails with %s (sent: %s), the outcome is %s', async (code, sent, outcome) => {
  const { session, results } = open()
  const error = new AppError('unavailable', code, '"mail" ended.', { details: sent === undefined ? {} : { sent } })
  await expect(journal(session, 'c', () => Promise.reject(error))).rejects.toBe(error)
  const [result] = results()
  expect(result).toMatchObject({
    callId: 'c',
    isError: true,
    content: [{ text: expect.stringMatching(/^"mail" ended\./) }]
  })
  expect(result?.outcome).toBe(outcome)
})

it.each([
  ['a person', stopped(), 'person', undefined, /^The turn was stopped while this ran; it may have run in part/],
  [
    'the end of the server',
    serverStopped(),
    'server',
    'unknown',
    /^The server was stopped or restarted while this was running.* may have run in part/
  ]
])('of a call that %s interrupted, the log says so', async (_who, reason, interruptedBy, outcome, text) => {
  const { session, results } = open()
  await expect(journal(session, 'c', () => Promise.reject(reason))).rejects.toBe(reason)
  expect(results()).toMatchObject([{ isError: true, interruptedBy, content: [{ text: expect.stringMatching(text) }] }])
  expect(results()[0]?.outcome).toBe(outcome)
})

// Seen before: the output that was on the screen vanished when the person pressed Stop.
it.each([
  ['a person', stopped(), /^The turn was stopped/],
  ['the end of the server', serverStopped(), /^The server was stopped/]
])('keeps what a call had written until %s interrupted it', async (_who, reason, why) => {
  const { events, results } = open()
  const connection = {
    isOpen: false,
    callTool: async (_name: string, _args: object, { onOutput }: { onOutput(chunk: object): void }) => {
      onOutput({ stream: 'stdout', text: 'x'.repeat(1_000_000) })
      onOutput({ stream: 'stderr', text: 'tick 14\n' })
      onOutput({ stream: 'stdout', text: 'tick 15\n' })
      throw reason
    }
  }
  const session = { epoch: 1, events, runningCalls: new Set(), openForCall: async () => {}, sandbox: { connection } }
  const call = { callId: 'c', name: 'execute_command', args: { command: 'x' } }
  await expect(runSandboxTool(session as unknown as LiveSession, call)).rejects.toBe(reason)
  expect(results()).toMatchObject([
    {
      isError: true,
      content: [
        { text: expect.stringMatching(/^\[… 868944 characters left out …\]\nx+tick 14\ntick 15\n$/) },
        { text: expect.stringMatching(why) }
      ]
    }
  ])
})
