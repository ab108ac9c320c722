import { afterEach, expect, test } from 'vitest'
import { type Connected, collect, connect, WIRES, type Wire } from '../../../tests/fixtures/model-servers/wires.ts'
import type { AssistantPart, ChatMessage } from '../port.ts'

const [anthropic, gemini, responses, chat] = WIRES as [Wire, Wire, Wire, Wire]
let connected: Connected | undefined
afterEach(() => connected?.server.close())

const toolCalls = [
  { id: 'call_1', name: 'read_file', args: '{"path":"a"}' },
  { id: 'call_2', name: 'read_file', args: '{"path":"b"}' }
]
const thinking = { text: 'Let me think… 🤔', signature: 'c2lnbmF0dXJl+/==' }

/** Runs two steps with the log's JSON in between, as after a restart. Returns the body of the second request. */
async function twoSteps(wire: Wire, first: object): Promise<{ parts: AssistantPart[]; body: Record<string, unknown> }> {
  connected = await connect(wire, { replies: [first, { text: 'done' }] })
  const { done, error } = await collect(connected.step('go'))
  expect(error).toBeUndefined()
  const parts: AssistantPart[] = JSON.parse(JSON.stringify(done?.parts))
  const messages: ChatMessage[] = [
    { role: 'user', text: 'go' },
    { role: 'assistant', parts },
    {
      role: 'tool',
      answers: parts.flatMap((part) =>
        part.type === 'tool-call' ? [{ callId: part.callId, name: part.name, text: 'ok', isError: false }] : []
      )
    }
  ]
  expect((await collect(connected.step(messages))).text).toBe('done')
  return { parts, body: connected.server.requests[1]?.body as Record<string, unknown> }
}

test('anthropic: signed and redacted thinking go back unchanged and in their place', async () => {
  const { body } = await twoSteps(anthropic, { thinking, redactedThinking: 'b3BhcXVl', text: 'Reading.', toolCalls })
  expect(body.messages).toMatchObject([
    { role: 'user' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: thinking.text, signature: thinking.signature },
        { type: 'redacted_thinking', data: 'b3BhcXVl' },
        { type: 'text', text: 'Reading.' },
        { type: 'tool_use', id: 'call_1', name: 'read_file', input: { path: 'a' } },
        { type: 'tool_use', id: 'call_2', name: 'read_file', input: { path: 'b' } }
      ]
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'call_1', content: 'ok' },
        { type: 'tool_result', tool_use_id: 'call_2', content: 'ok' }
      ]
    }
  ])
})

test('gemini: the thought signature goes back on its function call, and on no other', async () => {
  const { body } = await twoSteps(gemini, { thinking, toolCalls })
  const contents = body.contents as { role: string; parts: Record<string, unknown>[] }[]
  const calls = contents[1]?.parts.filter((part) => 'functionCall' in part)
  expect(calls).toMatchObject([
    { functionCall: { name: 'read_file', args: { path: 'a' } }, thoughtSignature: thinking.signature },
    { functionCall: { name: 'read_file', args: { path: 'b' } } }
  ])
  expect(calls?.[1]?.thoughtSignature).toBeUndefined()
  expect(contents[2]?.parts).toMatchObject([{ functionResponse: {} }, { functionResponse: {} }])
})

test('gemini: calls without an id get different ones', async () => {
  const { parts } = await twoSteps(gemini, { toolCalls: toolCalls.map((call) => ({ ...call, id: '' })) })
  const ids = parts.map((part) => (part.type === 'tool-call' ? part.callId : ''))
  expect(new Set(ids).size).toBe(2)
  expect(ids.every((id) => id.length > 5)).toBe(true)
})

test('gemini: a signature on text goes back with the text', async () => {
  connected = await connect(gemini, { replies: [{ thinking, text: 'Hello.' }, { text: 'done' }] })
  const { done } = await collect(connected.step('go'))
  await collect(
    connected.step([
      { role: 'user', text: 'go' },
      { role: 'assistant', parts: done?.parts ?? [] },
      { role: 'user', text: 'more' }
    ])
  )
  expect(JSON.stringify(connected.server.requests[1]?.body)).toContain(
    JSON.stringify({ text: 'Hello.', thoughtSignature: thinking.signature })
  )
})

test('openai responses: nothing is stored there, and the encrypted reasoning comes back from our log', async () => {
  const { body } = await twoSteps(responses, { thinking, text: 'Reading.', toolCalls })
  expect(body).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] })
  expect(body).not.toHaveProperty('previous_response_id')
  const input = body.input as Record<string, unknown>[]
  expect(input.some(({ type }) => type === 'item_reference')).toBe(false)
  expect(input.filter(({ type }) => type === 'reasoning')).toEqual([
    {
      type: 'reasoning',
      id: 'rs_1',
      encrypted_content: thinking.signature,
      summary: [{ type: 'summary_text', text: thinking.text }]
    }
  ])
  expect(input.filter(({ type }) => type === 'function_call')).toMatchObject([
    { call_id: 'call_1', arguments: '{"path":"a"}' },
    { call_id: 'call_2', arguments: '{"path":"b"}' }
  ])
  expect(input.filter(({ type }) => type === 'function_call_output')).toMatchObject([
    { call_id: 'call_1', output: 'ok' },
    { call_id: 'call_2', output: 'ok' }
  ])
})

test('openai-compatible: reasoning is shown and sent back with its message', async () => {
  const { body, parts } = await twoSteps(chat, { thinking, text: 'Reading.', toolCalls })
  expect(parts[0]).toMatchObject({ type: 'reasoning', text: thinking.text })
  expect((body.messages as unknown[])[2]).toMatchObject({
    role: 'assistant',
    content: 'Reading.',
    reasoning_content: thinking.text,
    tool_calls: [{ id: 'call_1', function: { arguments: '{"path":"a"}' } }, { id: 'call_2' }]
  })
})
