import { afterEach, describe, expect, test } from 'vitest'
import type { ScriptedServerOptions } from '../../../tests/fixtures/model-servers/model-reply.ts'
import { type Connected, collect, connect, WIRES, type Wire } from '../../../tests/fixtures/model-servers/wires.ts'
import type { AssistantPart, ChatMessage } from '../port.ts'

const open: Connected[] = []
async function talk(wire: Wire, script: ScriptedServerOptions): Promise<Connected> {
  const connected = await connect(wire, script)
  open.push(connected)
  return connected
}
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ server }) => server.close()))
})

const UMLAUTS = 'Grüße aus Köln: 🦊🦊 — "done"\n'

describe.each(WIRES)('$name', (wire) => {
  test.each([1, 2, 3, 7, 64])('text in pieces of %i bytes arrives whole', async (chunkBytes) => {
    const text = [UMLAUTS, UMLAUTS, 'end']
    const { step } = await talk(wire, {
      replies: [{ text, usage: { input: 12, output: 34 }, delivery: { chunkBytes } }]
    })
    const { done, text: streamed, error } = await collect(step('hi'))
    expect(error).toBeUndefined()
    expect(streamed).toBe(text.join(''))
    expect(done?.parts).toMatchObject([{ type: 'text', text: text.join('') }])
    expect(done).toMatchObject({ finish: 'stop', usage: { inputTokens: 12, outputTokens: 34 } })
  })

  test('what stays the same is marked for the cache of Claude only, and cached tokens are reported', async () => {
    const toolCalls = [{ id: 'call_a', name: 'read_file', args: '{}' }]
    const usage = { input: 100, output: 5, cached: 80 }
    const { step, server } = await talk(wire, { replies: [{ toolCalls }, { text: 'ok', usage }] })
    const first = await collect(step('go'))
    const { done } = await collect(step(answered('go', first.done?.parts ?? [], 'read', false)))
    expect(done?.usage).toEqual({ inputTokens: 100, outputTokens: 5, cachedTokens: 80 })
    const body = server.requests[1]?.body as { system?: object[]; messages?: { content: object[] }[] }
    const mark = { cache_control: { type: 'ephemeral' } }
    if (wire.name === 'anthropic') {
      expect(body.system?.at(-1)).toMatchObject(mark)
      expect(body.messages?.at(-1)?.content.at(-1)).toMatchObject({ type: 'tool_result', ...mark })
    }
    expect(JSON.stringify(body).match(/ephemeral/g)?.length ?? 0).toBe(wire.name === 'anthropic' ? 2 : 0)
  })

  test('parallel calls keep their order, ids and bytes', async () => {
    const toolCalls = [
      { id: 'call_a', name: 'read_file', args: '{"path":"a ä.txt"}' },
      { id: 'call_b', name: 'read_file', args: '{"path":"b.txt"}' },
      { id: 'call_c', name: 'read_file', args: '{}' }
    ]
    const { step } = await talk(wire, { replies: [{ text: 'Reading.', toolCalls, delivery: { chunkBytes: 11 } }] })
    const { done, error } = await collect(step('read both'))
    expect(error).toBeUndefined()
    expect(done?.finish).toBe('tool-calls')
    const calls = done?.parts.filter((part) => part.type === 'tool-call')
    expect(calls?.map(({ callId, name, args, invalid }) => ({ id: callId, name, args, invalid }))).toEqual(
      toolCalls.map((call) => ({ ...call, invalid: undefined }))
    )
  })

  test('an unknown tool is passed on, and its name can be sent back', async () => {
    const toolCalls = [{ id: 'call_x', name: 'no.such tool', args: '{"a":1}' }]
    const { step, server } = await talk(wire, { replies: [{ toolCalls }, { text: 'I see.' }] })
    const first = await collect(step('go'))
    expect(first.done?.parts).toMatchObject([{ type: 'tool-call', name: 'no.such tool', args: '{"a":1}' }])
    const second = await collect(step(answered('go', first.done?.parts ?? [], 'There is no such tool.', true)))
    expect(second.text).toBe('I see.')
    expect(JSON.stringify(server.requests[1]?.body)).toContain('no_such_tool')
    expect(JSON.stringify(server.requests[1]?.body)).toContain('There is no such tool.')
  })

  test('a call id that was used before is replaced', async () => {
    const toolCalls = [{ id: 'call_0', name: 'read_file', args: '{}' }]
    const { step } = await talk(wire, { replies: [{ toolCalls }, { toolCalls: [...toolCalls, ...toolCalls] }] })
    const first = await collect(step('go'))
    const second = await collect(step(answered('go', first.done?.parts ?? [], 'ok', false)))
    const ids = [...(first.done?.parts ?? []), ...(second.done?.parts ?? [])].map((part) =>
      part.type === 'tool-call' ? part.callId : ''
    )
    expect(ids).toHaveLength(3)
    expect(new Set(ids).size).toBe(3)
  })

  test('an empty answer is an error', async () => {
    const { step } = await talk(wire, { replies: [{}] })
    expect((await collect(step('hi'))).error).toMatchObject({ code: 'model_empty_answer' })
  })

  test('an answer that ended at its length limit says so', async () => {
    const stop = { anthropic: 'max_tokens', gemini: 'MAX_TOKENS', 'openai responses': 'max_output_tokens' }[wire.name]
    const { step } = await talk(wire, { replies: [{ text: 'half', stop: stop ?? 'length' }] })
    expect((await collect(step('hi'))).done).toMatchObject({ finish: 'length', parts: [{ text: 'half' }] })
  })

  test('the key and the conversation are sent where they belong', async () => {
    const { step, server } = await talk(wire, { replies: [{ text: 'ok' }] })
    await collect(step('my question', { maxOutputTokens: 99 }))
    const [request] = server.requests
    expect(Object.values(request?.headers ?? {}).join(' ')).toContain('test-key-0123456789')
    expect(request?.path).not.toContain('test-key')
    expect(JSON.stringify(request?.body)).toContain('my question')
    expect(JSON.stringify(request?.body)).toContain('99')
  })
})

describe.each(WIRES.filter(({ name }) => name !== 'gemini'))('$name', (wire) => {
  // Gemini sends arguments as an object, which can't be broken JSON.
  test.each(['{"path": "a', '[1]', '"text"', 'null'])('arguments %s are marked, not hidden', async (args) => {
    const toolCalls = [
      { id: 'call_1', name: 'read_file', args },
      { id: 'call_2', name: 'read_file', args: '{"path":"b"}' }
    ]
    const { step, server } = await talk(wire, { replies: [{ toolCalls }, { text: 'Sorry.' }] })
    const { done } = await collect(step('go'))
    expect(done?.parts).toMatchObject([{ args, invalid: expect.stringContaining('JSON') }, { args: '{"path":"b"}' }])
    expect(done?.parts[1]).not.toHaveProperty('invalid')
    const second = await collect(step(answered('go', done?.parts ?? [], 'not valid JSON', true)))
    expect(second.text).toBe('Sorry.')
    expect(server.requests).toHaveLength(2)
  })
})

describe('refusals', () => {
  const [anthropic, gemini, responses, chat] = WIRES as [Wire, Wire, Wire, Wire]
  const blockedPrompt = {
    events: [{ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 3 } }]
  }
  test.each([
    ['anthropic', anthropic, { text: 'No.', stop: 'refusal' }],
    ['anthropic without a word', anthropic, { stop: 'refusal' }],
    ['gemini safety', gemini, { text: 'No.', stop: 'SAFETY' }],
    ['gemini blocked prompt', gemini, blockedPrompt],
    ['responses refusal', responses, { refusal: 'No.' }],
    ['responses content filter', responses, { text: 'No', stop: 'content_filter' }],
    ['chat refusal', chat, { refusal: 'No.' }],
    ['chat content filter', chat, { text: 'No', stop: 'content_filter' }]
  ])('%s', async (_, wire, reply) => {
    const { step } = await talk(wire, { replies: [reply] })
    expect((await collect(step('hi'))).done?.finish).toBe('refusal')
  })

  test('calls of a refused answer are not passed on', async () => {
    const toolCalls = [{ id: 'call_1', name: 'read_file', args: '{"path":"x"}' }]
    const { step } = await talk(anthropic, { replies: [{ text: 'No.', toolCalls, stop: 'refusal' }] })
    expect((await collect(step('hi'))).done).toMatchObject({ finish: 'refusal', parts: [{ type: 'text' }] })
  })
})

function answered(question: string, parts: AssistantPart[], text: string, isError: boolean): ChatMessage[] {
  const answers = parts.flatMap((part) =>
    part.type === 'tool-call' ? [{ callId: part.callId, name: part.name, text, isError }] : []
  )
  return [
    { role: 'user', text: question },
    { role: 'assistant', parts },
    { role: 'tool', answers }
  ]
}
