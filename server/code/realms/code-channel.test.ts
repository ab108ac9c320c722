import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { CODE_LIMITS } from '../../../workspace-server/code/code-protocol.ts'
import type { ProgramCall } from '../program-call.ts'
import { CodeChannel, type ProgramEnd } from './code-channel.ts'

function open() {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const { promise: exited, resolve: exit } = Promise.withResolvers<string>()
  const calls: ProgramCall[] = []
  const logs: string[] = []
  const ends: ProgramEnd[] = []
  const channel = new CodeChannel(
    { stdin, stdout, exited, stop: async () => {} },
    {
      call: (call) => void calls.push(call),
      log: (text) => void logs.push(text),
      progress: () => {},
      end: (end) => void ends.push(end)
    }
  )
  const write = (...messages: (object | string)[]) => {
    for (const message of messages) stdout.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`)
  }
  return { channel, stdin, stdout, calls, logs, ends, write, exit }
}

/** A channel with a running program, and the token that only its realm knows. */
async function running() {
  const opened = open()
  opened.write({ type: 'ready', runtime: '1' })
  expect(await opened.channel.ready).toBe('1')
  opened.channel.run({ code: '1', seed: 1, now: 1 })
  const { token } = JSON.parse(String(opened.stdin.read()))
  const call = (n: number, more: object = {}) => ({
    ...{ type: 'call', token, n, kind: 'tool', server: 's', tool: 't', args: '{}', line: 1 },
    ...more
  })
  return { ...opened, token, call }
}

const broken = { ok: false, code: 'code_channel_broken' }

describe('the channel', () => {
  it('takes calls in order, output, and one end', async () => {
    const { write, call, token, calls, logs, ends } = await running()
    write(call(1, { args: '{"a":1}' }), { type: 'log', token, text: 'x' }, call(2), {
      type: 'done',
      token,
      value: '[1]'
    })
    write(call(3), { type: 'failed', token, code: 'x', message: 'late', line: 1 })
    await vi.waitUntil(() => ends.length > 0)
    expect(calls).toMatchObject([{ n: 1, args: { a: 1 } }, { n: 2 }])
    expect([logs, ends]).toEqual([['x'], [{ ok: true, value: [1] }]])
  })

  // Checked: if the token is not checked, a forged call is accepted.
  it.each([
    ['a call without the token', { token: undefined }],
    ['a call with another token', { token: 'x'.repeat(32) }],
    ['a call that is skipped', { n: 2 }],
    ['a call of another kind', { kind: 'shell' }],
    ['arguments that are no object', { args: '[1]' }],
    ['arguments that are no JSON', { args: '{' }],
    ['arguments that are too long', { args: JSON.stringify({ x: 'x'.repeat(CODE_LIMITS.argumentChars) }) }],
    ['a name that is too long', { tool: 'x'.repeat(501) }],
    ['a message of another type', { type: 'approve' }]
  ])('ends the run on %s', async (_, forged) => {
    const { write, call, calls, ends } = await running()
    write(call(1, forged), call(1))
    await vi.waitUntil(() => ends.length > 0)
    expect(ends).toMatchObject([broken])
    expect(calls).toEqual([])
  })

  it('ends the run on a call that is made twice', async () => {
    const { write, call, calls, ends } = await running()
    write(call(1), call(1))
    await vi.waitUntil(() => ends.length > 0)
    expect([calls.length, ends]).toMatchObject([1, [broken]])
  })

  it('accepts nothing but its readiness before the program was sent', async () => {
    const { write, calls, ends } = open()
    write({ type: 'call', token: '', n: 1, kind: 'tool', server: 's', tool: 't', args: '{}', line: 1 })
    await vi.waitUntil(() => ends.length > 0)
    expect([calls, ends]).toMatchObject([[], [broken]])
  })

  it('stops a program that goes on calling', async () => {
    const { write, call, calls, ends } = await running()
    for (let n = 1; n <= CODE_LIMITS.stoppedAtCalls + 1; n++) write(call(n))
    await vi.waitUntil(() => ends.length > 0)
    expect(calls).toHaveLength(CODE_LIMITS.stoppedAtCalls)
    expect(ends).toMatchObject([{ code: 'code_too_many_calls' }])
  })

  it('tells the end of the process from the end of the program', async () => {
    const { ends, exit } = await running()
    exit('killed')
    await vi.waitUntil(() => ends.length > 0)
    expect(ends).toMatchObject([{ code: 'code_realm_ended' }])
  })

  it('accepts only calls in order and ends once, whatever is written and however it is split', async () => {
    const token = fc.constantFrom('good', 'bad', undefined)
    const message = fc.oneof(
      fc.record({
        type: fc.constant('call'),
        token,
        n: fc.integer({ min: 0, max: 5 }),
        kind: fc.constantFrom('tool', 'sleep', 'x'),
        server: fc.string({ maxLength: 5 }),
        tool: fc.oneof(fc.string({ maxLength: 5 }), fc.integer()),
        args: fc.oneof(fc.constant('{}'), fc.json({ maxDepth: 2 }), fc.string({ maxLength: 9 })),
        line: fc.oneof(fc.integer(), fc.string({ maxLength: 3 }))
      }),
      fc.record({
        type: fc.constantFrom('log', 'progress', 'done', 'failed', 'ready'),
        token,
        text: fc.string(),
        value: fc.json()
      }),
      fc.string({ maxLength: 30 })
    )
    const property = fc.asyncProperty(
      fc.array(message, { maxLength: 12 }),
      fc.integer({ min: 1, max: 40 }),
      async (all, size) => {
        const { stdout, token: good, calls, ends, exit } = await running()
        const lines = all.map((each) => {
          if (typeof each === 'string') return `${each}\n`
          return `${JSON.stringify({ ...each, token: each.token === 'good' ? good : each.token })}\n`
        })
        const bytes = Buffer.from(lines.join(''))
        for (let at = 0; at < bytes.length; at += size) stdout.write(bytes.subarray(at, at + size))
        await vi.waitUntil(() => stdout.readableLength === 0)
        exit('over')
        await vi.waitUntil(() => ends.length > 0)
        expect(ends).toHaveLength(1)
        expect(calls.map(({ n }) => n)).toEqual(calls.map((_, at) => at + 1))
        for (const { args, line } of calls) expect([typeof args, Number.isSafeInteger(line)]).toEqual(['object', true])
      }
    )
    await fc.assert(property, { numRuns: 100 })
  })
})
