import { Client } from '@modelcontextprotocol/client'
import { afterEach, expect, it, vi } from 'vitest'
import { readEntry } from '../catalog/read-entry.ts'
import { AppError } from '../lib/errors.ts'
import { silentLogger } from '../lib/logger.ts'
import { StartGate } from '../lib/waiting/start-gate.ts'
import { LiveServer } from './live-server.ts'
import { ServerConnection } from './server-connection.ts'
import { ServerLog } from './server-log.ts'

afterEach(() => void vi.useRealTimers())

type Options = ConstructorParameters<typeof ServerConnection>[0]

function connectionTo(entry: Options['entry'], open: Options['open'], gate = new StartGate(1)): ServerConnection {
  const quiet = { log: new ServerLog(undefined), logger: silentLogger, toolsSeen: () => 0 }
  return new ServerConnection({ entry, open, gate, ...quiet, onListed: () => {}, onFailed: () => {} })
}

it.each([
  ['stops when it has had no call for idleSeconds', 5, 'stopped'],
  ['with idleSeconds 0 never stops when idle', 0, 'running']
])('%s', async (_, idleSeconds, state) => {
  vi.useFakeTimers()
  const entry = readEntry('still', { command: 'none', idleSeconds }, 0)
  class Open extends LiveServer {
    closed = false
    override get isOpen() {
      return !this.closed
    }
    override async list() {
      return []
    }
    override async close() {
      this.closed = true
    }
  }
  const connection = connectionTo(
    entry,
    async () => new Open(entry, new Client({ name: 'test', version: '1' }), undefined, (text) => text)
  )
  await connection.list(new AbortController().signal)
  expect(connection.state.state).toBe('running')
  await vi.advanceTimersByTimeAsync(86_400_000)
  expect(connection.state.state).toBe(state)
  await connection.stop()
})

it('lists tools less and less often for a server that keeps announcing changes', async () => {
  vi.useFakeTimers()
  const entry = readEntry('busy', { command: 'none' }, 0)
  let lists = 0
  class Listed extends LiveServer {
    override async list() {
      lists++
      return []
    }
  }
  let changed = () => {}
  const connection = connectionTo(entry, async (_, onToolsChanged) => {
    changed = onToolsChanged
    return new Listed(entry, new Client({ name: 'test', version: '1' }), undefined, (text) => text)
  })
  await connection.list(new AbortController().signal)
  changed()
  await vi.advanceTimersByTimeAsync(1)
  expect(lists).toBe(1)
  for (let times = 0; times < 200; times++) {
    changed()
    await vi.advanceTimersByTimeAsync(310)
  }
  expect(lists).toBeLessThan(8)
  await connection.stop()
})

/** A server that starts well and answers every call as `answer` says; it returns its connection and a call. */
function answering(answer: () => AppError | undefined) {
  vi.useFakeTimers()
  const entry = readEntry('answering', { command: 'none' }, 0)
  const caller = { owner: 'local', door: 'stdio' as const }
  const tool = { name: 'wait', description: '', inputSchema: { type: 'object' }, hash: '' }
  class Answering extends LiveServer {
    override tools = [tool]
    override async list() {
      return [tool]
    }
    override async isResponsive() {
      return answer()?.code !== 'child_timeout'
    }
    override async call(): Promise<{ content: [] }> {
      const failure = answer()
      if (failure) throw failure
      return { content: [] }
    }
    override async close() {}
  }
  const connection = connectionTo(
    entry,
    async () => new Answering(entry, new Client({ name: 'test', version: '1' }), undefined, (text) => text)
  )
  const call = () =>
    connection.call({ caller, tool: 'wait', args: {}, signal: new AbortController().signal, mustNotRepeat: true })
  return { connection, call }
}

const hang = new AppError('timeout', 'child_timeout', 'It did not answer in time.')
const refusal = new AppError('invalid', 'child_refused', 'There is no such file.', { details: { sent: true } })

it.each([
  ['have hung', hang],
  ['got an answer that nobody can read', new AppError('unavailable', 'child_answer_invalid', 'It is invalid.')]
])('refuses calls for a while when five in a row %s, although the server starts well each time', async (_, failure) => {
  let fails = true
  const { connection, call } = answering(() => (fails ? failure : undefined))
  for (let times = 0; times < 5; times++) await expect(call()).rejects.toMatchObject({ code: failure.code })
  await expect(call()).rejects.toMatchObject({ code: 'server_resting', details: { sent: false } })
  expect(connection.state.breaker).toBe('open')
  fails = false
  await vi.advanceTimersByTimeAsync(2000)
  await expect(call()).resolves.toMatchObject({ attempts: 1 })
  expect(connection.state.breaker).toBe('closed')
  await connection.stop()
})

it('takes an answer for a sign of life even if it is an error, which may be about what was asked', async () => {
  let failure = refusal
  const { connection, call } = answering(() => failure)
  for (let times = 0; times < 9; times++) await expect(call()).rejects.toMatchObject({ code: 'child_refused' })
  for (failure of [hang, hang, hang, hang, refusal, hang])
    await expect(call()).rejects.toMatchObject({ code: failure.code })
  expect(connection.state.breaker).toBe('closed')
  await connection.stop()
})

// Checked: with a deadline for each try, it opens twice.
it.each([
  ['never answers', 40_000, 1, 'server_start_timeout'],
  ['fails at once', 0, 2, 'server_failed'],
  ['fails when most of the time is over', 29_000, 1, 'server_failed']
])('gives all tries of a start one deadline: a server that %s', async (_, ms, tries, code) => {
  vi.useFakeTimers()
  const entry = readEntry('slow', { command: 'none' }, 0)
  const opened: number[] = []
  const connection = connectionTo(entry, async (signal, _changed, answersBy) => {
    opened.push(Math.round(answersBy - performance.now()))
    if (code === 'server_failed') {
      if (ms > 0) await new Promise((done) => setTimeout(done, ms))
      throw new AppError('unavailable', 'server_failed', 'It ended.')
    }
    return new Promise((_done, fail) => signal.addEventListener('abort', () => fail(signal.reason)))
  })
  const failed = connection.list(new AbortController().signal).catch((error) => error)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await failed).toMatchObject({ code })
  expect(opened).toEqual(Array(tries).fill(30_000))
  await connection.stop()
})

// Without overtime, the start would be ended at its deadline, and the next call would begin another one.
it('lets a start that makes progress go on in the background, and says so', async () => {
  vi.useFakeTimers()
  const entry = readEntry('slow', { command: 'none' }, 0)
  let starts = 0
  const gate = new StartGate(1)
  const { promise: answered, resolve: answer } = Promise.withResolvers<LiveServer>()
  const connection = connectionTo(
    entry,
    async (signal, _changed, answersBy, onOvertime) => {
      starts++
      setTimeout(onOvertime, answersBy - performance.now())
      const ended = new Promise<never>((_, fail) => signal.addEventListener('abort', () => fail(signal.reason)))
      return Promise.race([answered, ended])
    },
    gate
  )
  const list = () => connection.list(new AbortController().signal).catch((error) => error)
  const first = list()
  await vi.advanceTimersByTimeAsync(29_000)
  let isOtherStarted = false
  void gate.run(async () => {
    isOtherStarted = true
  })
  expect(isOtherStarted).toBe(false)
  await vi.advanceTimersByTimeAsync(2000)
  const error = await first
  expect(error).toMatchObject({ code: 'server_starting', details: { sent: false } })
  expect(error.message).toContain('goes on starting in the background')
  // It keeps no other server from starting, and a later call gets the same answer at once.
  expect(isOtherStarted).toBe(true)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(await list()).toMatchObject({ code: 'server_starting' })
  answer(new LiveServer(entry, new Client({ name: 'test', version: '1' }), undefined, (text) => text))
  await vi.advanceTimersByTimeAsync(1)
  expect(await list()).toEqual([])
  expect([starts, connection.state.state]).toEqual([1, 'running'])
  await connection.stop()
})
