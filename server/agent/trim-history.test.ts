import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AssistantPart, ChatFile, ChatMessage } from '../models/port.ts'
import { estimateRequest, estimateTokens, trimHistory } from './trim-history.ts'

let ids = 0
const words = fc.string({ maxLength: 400 }).map((text) => text.repeat(10))
const step = fc.record({ text: words, calls: fc.array(fc.record({ args: words, answer: words }), { maxLength: 3 }) })

const exchange = fc.record({ question: words, steps: fc.array(step, { maxLength: 4 }) }).map(({ question, steps }) => {
  const messages: ChatMessage[] = [{ role: 'user', text: question }]
  for (const { text, calls } of steps) {
    const made = calls.map((call) => ({ ...call, callId: `c${ids++}` }))
    const parts: AssistantPart[] = [
      { type: 'text', text },
      ...made.map(({ callId, args }) => ({ type: 'tool-call' as const, callId, name: 'x', args }))
    ]
    messages.push({ role: 'assistant', parts })
    const answers = made.map(({ callId, answer }) => ({ callId, name: 'x', text: answer, isError: false }))
    if (answers.length > 0) messages.push({ role: 'tool', answers })
  }
  return messages
})

const history = fc.array(exchange, { minLength: 1, maxLength: 6 }).map((list) => list.flat())

const callsIn = (messages: ChatMessage[]) =>
  messages.flatMap((message) =>
    message.role === 'assistant'
      ? message.parts.flatMap((part) => (part.type === 'tool-call' ? [part.callId] : []))
      : []
  )
const answersIn = (messages: ChatMessage[]) =>
  messages.flatMap((message) => (message.role === 'tool' ? message.answers.map(({ callId }) => callId) : []))

describe('trimming', () => {
  it('never separates a call from its answer, begins with a question, and keeps the last one', () => {
    fc.assert(
      fc.property(history, fc.nat(5000), (messages, maxTokens) => {
        const trimmed = trimHistory(messages, maxTokens)
        expect(answersIn(trimmed.messages)).toEqual(callsIn(trimmed.messages))
        for (const [at, message] of trimmed.messages.entries())
          if (message.role === 'tool') expect(trimmed.messages[at - 1]?.role).toBe('assistant')
        expect(trimmed.messages[0]?.role).toBe('user')
        const isUser = ({ role }: ChatMessage) => role === 'user'
        expect(trimmed.messages.findLast(isUser)).toEqual(messages.findLast(isUser))
        expect(trimmed.dropped).toBe(messages.length - trimmed.messages.length)
      })
    )
  })

  it('changes nothing that fits; otherwise the result fits, unless one question and one step are too long', () => {
    fc.assert(
      fc.property(history, fc.nat(5000), (messages, maxTokens) => {
        const trimmed = trimHistory(messages, maxTokens).messages
        if (estimateTokens(messages) <= maxTokens) expect(trimmed).toEqual(messages)
        else if (estimateTokens(trimmed) > maxTokens) expect(trimmed.length).toBeLessThanOrEqual(3)
      })
    )
  })

  it("counts the provider's attachments", () => {
    const signed = (meta: string): ChatMessage[] => [
      { role: 'assistant', parts: [{ type: 'reasoning', text: '', meta: { vendor: { signature: meta } } }] }
    ]
    expect(estimateTokens(signed('x'.repeat(7000)))).toBeGreaterThan(2000)
  })

  const image = (id: string): ChatFile => ({
    id,
    name: `${id}.png`,
    mediaType: 'image/png',
    size: 500_000,
    width: 3000,
    height: 3000
  })
  const looked = (id: string): ChatMessage[] => [
    { role: 'user', text: `look at ${id}`, files: [image(id)] },
    { role: 'assistant', parts: [{ type: 'text', text: 'ok' }] }
  ]
  const shown = (messages: ChatMessage[]) =>
    messages.flatMap((message) => (message.role === 'user' ? (message.files ?? []) : [])).filter((f) => !f.isLeftOut)

  it('counts an image, and leaves out the oldest ones before anything else', () => {
    const messages = ['a', 'b', 'c'].flatMap(looked)
    expect(estimateTokens(messages)).toBeGreaterThan(3 * 1500)
    const trimmed = trimHistory(messages, 3500)
    expect(trimmed.dropped).toBe(0)
    expect(shown(trimmed.messages).map(({ id }) => id)).toEqual(['b', 'c'])
    expect(shown(trimHistory(messages, 500).messages).map(({ id }) => id)).toEqual(['c'])
  })

  it('sends no more files than vendors accept', () => {
    const many = trimHistory(Array.from({ length: 30 }, (_, at) => looked(`i${at}`)).flat(), 1e9).messages
    expect(shown(many).map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, at) => `i${at + 10}`))
    const files = Array.from({ length: 5 }, (_, at) => ({ ...image(`big${at}`), size: 3_700_000 }))
    const big = trimHistory([{ role: 'user', text: 'look', files }], 1e9).messages
    expect(shown(big).map(({ id }) => id)).toEqual(['big2', 'big3', 'big4'])
  })

  it('never leaves half a character, wherever it cuts', () => {
    for (const shift of ['', 'a']) {
      const answers = ['c1', 'c2'].map((callId) => ({
        callId,
        name: 'x',
        text: `${shift}${'😀'.repeat(2000)}`,
        isError: false
      }))
      const parts = answers.map(({ callId }) => ({ type: 'tool-call' as const, callId, name: 'x', args: '{}' }))
      const { messages } = trimHistory(
        [
          { role: 'user', text: 'q' },
          { role: 'assistant', parts },
          { role: 'tool', answers }
        ],
        100
      )
      expect(JSON.stringify(messages)).toContain('left out')
      expect(JSON.stringify(messages)).not.toMatch(/\\ud[89a-f]/)
    }
  })
})

// Seen failing before: an offered tool has its definition twice, and both were counted.
it('counts of each tool only what the model gets', () => {
  const tool = { name: 'read', description: 'Reads. '.repeat(100), inputSchema: { type: 'object' } }
  const offered = { ...tool, whole: tool, server: 'files', definition: 'x'.repeat(64) }
  const size = (tools: (typeof tool)[]) => estimateRequest({ system: '', tools, messages: [] })
  expect(size([offered, offered])).toBe(size([tool, tool]))
})
