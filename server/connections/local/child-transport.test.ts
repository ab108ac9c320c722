import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { setImmediate as nextRound } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { ChildTransport } from './child-transport.ts'

/** A child that is nothing but its streams. */
async function open() {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const never = new Promise<string>(() => {})
  const stop = vi.fn(async () => {})
  const child = { pid: 0, stdin, stdout, stderr, exited: never, stop }
  const transport = new ChildTransport(child, { onNoise: () => {}, maxLineBytes: 100_000 })
  transport.onmessage = () => {}
  await transport.start()
  const call = () => transport.calls.call({ name: 'x' }, { timeoutMs: 60_000, signal: new AbortController().signal })
  /** An exception here is one in a stream's listener there: the end of the whole process. */
  const say = (text: string) => void stdout.emit('data', Buffer.from(text))
  return { transport, stdout, stop, call, say }
}

const KEYS = ['jsonrpc', 'id', 'method', 'params', 'result', 'error', 'code', 'message', 'data', 'progressToken']
const hostile = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(null, true, 0, -1, 1e308, '', '2.0', 'call:1', 'notifications/progress', 'tools/call'),
    fc.string({ unit: 'binary', maxLength: 10 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...KEYS, 'toString', 'valueOf', 'toJSON', 'then', 'constructor'), tie('value'), {
      maxKeys: 5
    })
  )
})).value
const odd = fc.oneof(hostile, fc.constantFrom({ toString: 0 }, { valueOf: 0, toString: null }, [{ toString: '' }]))
const error = fc.oneof(odd, fc.record({ code: odd, message: odd, data: odd }, { requiredKeys: [] }))
const message = fc.record(
  { jsonrpc: fc.constant('2.0'), id: hostile, method: hostile, params: hostile },
  { requiredKeys: ['jsonrpc'] }
)
const answer = fc.record(
  { jsonrpc: fc.constant('2.0'), id: fc.constantFrom('call:1', 1, 'call:2'), error, result: odd },
  { requiredKeys: ['jsonrpc', 'id'] }
)

describe('what a child writes', () => {
  // Checked: if String() converts the message of an error, a message {"toString": 0} throws in the stream's listener.
  it('never throws, and every answered call ends', async () => {
    const lines = fc.array(
      fc.oneof(message, answer, hostile).map((value) => JSON.stringify(value)),
      { maxLength: 5 }
    )
    await fc.assert(
      fc.asyncProperty(lines, answer, fc.string({ unit: 'binary' }), async (before, last, noise) => {
        const { call, say, transport } = await open()
        const ended = call().then(
          () => true,
          (error: Error) => typeof error.message === 'string'
        )
        for (const line of [...before, noise, JSON.stringify({ ...last, id: 'call:1' })]) say(`${line}\n`)
        await nextRound()
        expect(await ended).toBe(true)
        expect(transport.calls.size).toBe(0)
      }),
      { numRuns: 500 }
    )
  })

  // Checked: if any id answers the oldest call, the forged answer is returned.
  it('answers only pending calls, once, whatever ids it makes up', async () => {
    const { call, say } = await open()
    const first = call()
    const second = call()
    const line = (id: unknown, text: string) => say(`${JSON.stringify({ jsonrpc: '2.0', id, result: { text } })}\n`)
    for (const id of ['call:3', 'call:', 'call:__proto__', 1, null, ['call:1'], { id: 'call:1' }]) line(id, 'forged')
    line('call:2', 'real 2')
    line('call:2', 'forged')
    line('call:1', 'real 1')
    expect(await Promise.all([first, second])).toEqual([{ text: 'real 1' }, { text: 'real 2' }])
  })
})

describe('a child that closes its output', () => {
  it('is not open from then on, so that the next call finds a fresh server', async () => {
    const { transport, stdout } = await open()
    expect(transport.isOpen).toBe(true)
    stdout.end()
    await once(stdout, 'end')
    expect(transport.isOpen).toBe(false)
    expect(() => transport.assertAlive(false)).toThrow('has stopped')
  })

  it('is stopped if it lives on', async () => {
    const { transport, stdout, stop } = await open()
    stdout.end()
    await expect.poll(() => stop.mock.calls.length).toBe(1)
    expect(transport.reason).toBe('it closed its output')
  })
})
