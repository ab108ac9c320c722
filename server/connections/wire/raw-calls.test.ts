import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { RawCalls } from './raw-calls.ts'

const MINUTE = 60_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

// Checked: if every report extends the deadline, the call still waits after two hours.
it('waits for a call that reports progress, but not for ever', async () => {
  const sent: JSONRPCMessage[] = []
  const calls = new RawCalls((message) => void sent.push(message))
  const onProgress = vi.fn()
  const ended = vi.fn()
  calls.call({ name: 'x' }, { timeoutMs: 2 * MINUTE, signal: new AbortController().signal, onProgress }).catch(ended)
  const params = { progressToken: 'call:1', progress: 1 }
  for (let minute = 1; minute <= 120 && ended.mock.calls.length === 0; minute++) {
    await vi.advanceTimersByTimeAsync(MINUTE)
    calls.take({ jsonrpc: '2.0', method: 'notifications/progress', params })
    if (minute < 60) expect(ended).not.toHaveBeenCalled()
  }
  expect(ended.mock.calls).toMatchObject([[{ message: 'Request timed out' }]])
  expect(sent.at(-1)).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 'call:1' } })
})

it('gives a call all the time that its server may be silent, however long', async () => {
  const calls = new RawCalls(() => {})
  const ended = vi.fn()
  calls.call({ name: 'x' }, { timeoutMs: 180 * MINUTE, signal: new AbortController().signal }).catch(ended)
  await vi.advanceTimersByTimeAsync(179 * MINUTE)
  expect(ended).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(2 * MINUTE)
  expect(ended).toHaveBeenCalled()
})
