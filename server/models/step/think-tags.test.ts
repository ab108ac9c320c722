import { expect, test } from 'vitest'
import { collect, connect, WIRES, type Wire } from '../../../tests/fixtures/model-servers/wires.ts'

const chat = WIRES[3] as Wire

/** The answer of a compatible server that sends these pieces, as deltas and as parts. */
async function answer(text: string[]) {
  const { step, server } = await connect(chat, { replies: [{ text }, { text: 'next' }] })
  try {
    const { events, done, error } = await collect(step('go'))
    const of = (type: string) =>
      events.map((event) => (event.type === type && 'text' in event ? event.text : '')).join('')
    const parts = done?.parts ?? []
    await collect(
      step([
        { role: 'user', text: 'go' },
        { role: 'assistant', parts },
        { role: 'user', text: 'more' }
      ])
    )
    const shown = parts.map((part) => (part.type === 'tool-call' ? part.name : `${part.type}: ${part.text}`))
    return {
      thought: of('reasoning-delta'),
      text: of('text-delta'),
      shown,
      error,
      next: JSON.stringify(server.requests[1]?.body)
    }
  } finally {
    await server.close()
  }
}

const WHOLE = '<think>\nFirst, 🦊 a < b.\n</think>\n\nThe answer is <b>.'

test.each([1, 2, 3, 5, 8, 100])(
  'a thought in tags is told from the answer in pieces of %i characters',
  async (size) => {
    const pieces = WHOLE.match(new RegExp(`[\\s\\S]{1,${size}}`, 'gu')) ?? []
    const { thought, text, shown, next } = await answer(pieces)
    expect(thought).toBe('First, 🦊 a < b.')
    expect(text).toBe('The answer is <b>.')
    expect(shown).toEqual(['reasoning: First, 🦊 a < b.', 'text: The answer is <b>.'])
    expect(next).not.toContain('First,')
  }
)

test.each([
  ['a tag in the middle of an answer', ['Write `<think>` and ', '</think> around it.']],
  ['what only looks like a tag', ['<thin', 'g>x</thing>']],
  ['the beginning of a tag', ['<thi']]
])('%s stays as it is', async (_, pieces) => {
  const { thought, text } = await answer(pieces)
  expect({ thought, text }).toEqual({ thought: '', text: pieces.join('') })
})

test('an empty thought is left out', async () => {
  const { shown } = await answer(['<think>\n\n</think>\n\n', 'Hi.'])
  expect(shown).toEqual(['text: Hi.'])
})

test('a thought whose opening tag the server has left out is told from the answer at its end', async () => {
  const { shown } = await answer(['Hm, let me see.\n', '</thi', 'nk>\n\nIt is 4.'])
  expect(shown).toEqual(['reasoning: Hm, let me see.', 'text: It is 4.'])
})

test('a thought that never ends is no answer', async () => {
  const { thought, error } = await answer(['<think>for ever'])
  expect(thought).toBe('for ever')
  expect(error).toMatchObject({ code: 'model_empty_answer' })
})
