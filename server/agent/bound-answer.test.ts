import { expect, it } from 'vitest'
import { boundAnswer, cutText } from './bound-answer.ts'

const MB = 1024 * 1024

it('leaves what models write as it is', () => {
  const parts = [
    { type: 'reasoning' as const, text: 'hm'.repeat(100_000), meta: { anthropic: { signature: 's' } } },
    { type: 'text' as const, text: 'x'.repeat(540_000) },
    {
      type: 'tool-call' as const,
      callId: 'c',
      name: 'write_file',
      args: JSON.stringify({ content: 'y'.repeat(1.1 * MB) })
    }
  ]
  expect(boundAnswer(parts) as unknown).toEqual(parts)
})

it('cuts a text that is too long between two characters, and says so in it', () => {
  const [part] = boundAnswer([{ type: 'text', text: '🧭'.repeat(2 * MB) }])
  const text = part?.type === 'text' ? part.text : ''
  expect(text.length).toBeLessThanOrEqual(2_000_000)
  expect(text.isWellFormed()).toBe(true)
  expect(text.slice(-120)).toContain('the limit is 2000000')
  expect(cutText(text)).toBe(text)
})

it('marks calls whose arguments do not fit, and tells the model', () => {
  const call = (callId: string, bytes: number) => ({
    type: 'tool-call' as const,
    callId,
    name: 'write_file',
    args: `"${'x'.repeat(bytes)}"`
  })
  const kept = boundAnswer([call('a', 5 * MB), call('b', 5 * MB), call('c', MB)])
  expect(
    kept.map((part) => part.type === 'tool-call' && [part.callId, part.args.length, part.invalid?.slice(0, 13)])
  ).toEqual([
    ['a', 5 * MB + 2, undefined],
    ['b', 2, 'The arguments'],
    ['c', MB + 2, undefined]
  ])
})
