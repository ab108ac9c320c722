import { afterEach, describe, expect, test } from 'vitest'
import type { ScriptedReply, ScriptedServerOptions } from '../../../tests/fixtures/model-servers/model-reply.ts'
import { type Connected, collect, connect, WIRES, type Wire } from '../../../tests/fixtures/model-servers/wires.ts'
import type { StepRequest } from '../port.ts'

const open: Connected[] = []
async function talk(wire: Wire, script: ScriptedServerOptions): Promise<Connected> {
  const connected = await connect(wire, script)
  open.push(connected)
  return connected
}
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ server }) => server.close()))
})

const [anthropic, gemini, responses, chat] = WIRES as [Wire, Wire, Wire, Wire]
const OPUS = 'anthropic/claude-opus-4-8'
const OLD_SONNET = 'anthropic/claude-sonnet-4-5'
const thinking = { text: 'Let me think… 🤔', signature: 'c2ln' }

/** The body of one request with these options. */
async function sent(wire: Wire, more: Partial<StepRequest>): Promise<Record<string, unknown>> {
  const { step, server } = await talk(wire, { replies: [{ text: 'ok' }] })
  expect((await collect(step('go', more))).error).toBeUndefined()
  return server.requests[0]?.body as Record<string, unknown>
}

/** A rejected request, with the fields that any of the vendors needs. */
function rejection(message: string): ScriptedReply {
  const error = { type: 'invalid_request_error', code: 400, status: 'INVALID_ARGUMENT', param: null, message }
  return { status: 400, body: { type: 'error', error } }
}

describe('the effort is requested in the form of each vendor', () => {
  const thinkingLevel = { thinkingLevel: 'medium', includeThoughts: true }
  test.each([
    ['new Claude', anthropic, OPUS, { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } }],
    ['older Claude', anthropic, OLD_SONNET, { thinking: { type: 'enabled', budget_tokens: expect.any(Number) } }],
    ['Gemini 3', gemini, gemini.model, { generationConfig: { thinkingConfig: thinkingLevel } }],
    [
      'Gemini 2.5',
      gemini,
      'gemini/gemini-2.5-flash',
      { generationConfig: { thinkingConfig: { includeThoughts: true } } }
    ],
    ['OpenAI', responses, responses.model, { reasoning: { effort: 'medium', summary: 'auto' } }],
    ['compatible', chat, chat.model, { reasoning_effort: 'medium' }]
  ])('%s', async (_, wire, model, body) => {
    expect(await sent(wire, { model, effort: 'medium' })).toMatchObject(body)
  })

  test.each([
    ['new Claude', anthropic, OPUS, { thinking: { type: 'disabled' } }],
    ['Gemini 2.5', gemini, 'gemini/gemini-2.5-flash', { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }],
    ['OpenAI', responses, 'openai/gpt-5.2', { reasoning: { effort: 'none' } }],
    ['compatible', chat, chat.model, { reasoning_effort: 'none' }]
  ])('off: %s', async (_, wire, model, body) => {
    expect(await sent(wire, { model, effort: 'off' })).toMatchObject(body)
  })

  test.each(WIRES)('without an effort, nothing about it is sent: $name', async (wire) => {
    expect(JSON.stringify(await sent(wire, {}))).not.toMatch(/effort|thinkingConfig|"thinking"/)
  })

  test('Claude gets no temperature while it thinks, and room for its answer besides its thoughts', async () => {
    const more = { model: OLD_SONNET, temperature: 0.3, maxOutputTokens: 2000 }
    const body = await sent(anthropic, { ...more, effort: 'high' })
    const { budget_tokens } = body.thinking as { budget_tokens: number }
    expect(body.max_tokens).toBe(budget_tokens + 2000)
    expect(body).not.toHaveProperty('temperature')
    expect(await sent(anthropic, { ...more, effort: 'off' })).toMatchObject({ temperature: 0.3, max_tokens: 2000 })
  })
})

test.each(WIRES)('thoughts are streamed apart from the answer: $name', async (wire) => {
  const { step } = await talk(wire, { replies: [{ thinking, text: 'Hello.', delivery: { chunkBytes: 7 } }] })
  const { events, text, done } = await collect(step('go', { effort: 'low' }))
  expect(text).toBe('Hello.')
  const thoughts = events.map((event) => (event.type === 'reasoning-delta' ? event.text : '')).join('')
  expect(thoughts).toBe(thinking.text)
  expect(done?.parts.map(({ type }) => type)).toEqual(['reasoning', 'text'])
})

describe.each(WIRES)('$name rejects the effort', (wire) => {
  const no = rejection('Unsupported parameter: thinking / reasoning_effort.')

  test('the request is sent again without it, which is remembered for this model', async () => {
    const { step, server } = await talk(wire, { replies: [no, { text: 'one' }, { text: 'two' }] })
    const first = await collect(step('go', { effort: 'high' }))
    expect(first).toMatchObject({ text: 'one', retries: [], error: undefined })
    expect((await collect(step('go', { effort: 'high' }))).text).toBe('two')
    const bodies = server.requests.map(({ body }) => /effort|thinking/i.test(JSON.stringify(body)))
    expect(bodies).toEqual([true, false, false])
  })

  test('a request that is rejected for another reason fails with that reason, and nothing is remembered', async () => {
    const other = rejection('Something else is wrong.')
    const { step, server } = await talk(wire, { replies: [other, other, { text: 'ok' }] })
    expect((await collect(step('go', { effort: 'high' }))).error).toMatchObject({ code: 'model_request_rejected' })
    expect((await collect(step('go', { effort: 'high' }))).text).toBe('ok')
    expect(JSON.stringify(server.requests[2]?.body)).toMatch(/effort|thinking/i)
  })
})

test('a temperature that is rejected is left out, and the effort stays', async () => {
  const no = rejection("'temperature' does not support 0.2 with this model.")
  const { step, server } = await talk(chat, { replies: [no, { text: 'ok' }] })
  expect((await collect(step('go', { effort: 'high', temperature: 0.2 }))).text).toBe('ok')
  expect(server.requests[0]?.body).toMatchObject({ temperature: 0.2, reasoning_effort: 'high' })
  expect(server.requests[1]?.body).toMatchObject({ reasoning_effort: 'high' })
  expect(server.requests[1]?.body).not.toHaveProperty('temperature')
})

test('Claude, which was asked to think in the middle of a turn, may think again in the next one', async () => {
  const no = rejection('When `thinking` is enabled, a final `assistant` message must start with a thinking block.')
  const { step, server } = await talk(anthropic, { replies: [no, { text: 'one' }, { text: 'two' }] })
  await collect(step('go', { effort: 'high' }))
  await collect(step('go', { effort: 'high' }))
  expect(server.requests.map(({ body }) => 'thinking' in (body as object))).toEqual([true, false, true])
})
