import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RecordedRequest, ScriptedReply } from '../fixtures/model-servers/model-reply.ts'
import type { ScriptedServer } from '../fixtures/model-servers/scripted-server.ts'
import { TEST_KEY, WIRES } from '../fixtures/model-servers/wires.ts'
import type { Client } from '../support/client.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { textOf } from '../support/text-of.ts'
import { pngOf } from '../support/tiny-png.ts'

/** The models that each vendor lists, in its own words. */
const LISTED: Record<string, Record<string, unknown>> = {
  anthropic: { type: 'model', id: 'claude-test', display_name: 'Claude', created_at: '2026-01-01' },
  gemini: { name: 'models/gemini-3-test', supportedGenerationMethods: ['generateContent'] },
  'openai responses': { id: 'gpt-5-test', object: 'model', created: 1 },
  'openai-compatible chat': { id: 'vendor/llama-test', object: 'model', created: 1 }
}

const ODD = 'Ünïcödé 😀 in pieces: “quotes”\n\ttabs, 漢字'
/** More than an event of the log had room for. */
const LARGE = '0123456789\n'.repeat(100_000)
const REFUSALS: Record<string, ScriptedReply> = {
  anthropic: { stop: 'refusal' },
  gemini: { stop: 'SAFETY' },
  'openai responses': { refusal: 'I will not.' },
  'openai-compatible chat': { stop: 'content_filter' }
}

/** Answers like the vendor to the last `#word` of the user. Text that the model got since then decides about second steps. */
function behave(wire: string, { body }: RecordedRequest): ScriptedReply {
  const told = JSON.stringify(body)
  const word = [...told.matchAll(/#([a-z0-9-]+)/g)].at(-1)?.[1]
  const status = Number(word)
  if (status) return { status, headers: { 'retry-after': '0' }, body: { error: { message: 'scripted' } } }
  switch (word) {
    case 'odd':
      return { text: [ODD.slice(0, 9), ODD.slice(9)], delivery: { chunkBytes: 3 } }
    case 'parallel':
      if (told.includes('made a.txt') && told.includes('made b.txt')) return { text: 'Both are there.' }
      return {
        text: 'On it.',
        toolCalls: ['a', 'b'].map((name) => run(`echo made ${name}.txt | tee ${name}.txt`, name))
      }
    case 'large':
      if (told.includes('1100000 bytes')) return { text: 'It is written.' }
      return {
        toolCalls: [{ id: 'call_large', name: 'write_file', args: JSON.stringify({ path: 'big.txt', content: LARGE }) }]
      }
    case 'look':
      if (told.includes('[image: image/png')) return { text: 'It is red.' }
      return { toolCalls: [{ id: 'call_look', name: 'read_file', args: '{"path":"attachments/red.png"}' }] }
    case 'cut':
      return { text: ['It was a dark', ' and stormy night'], delivery: { stopAfter: 'It was a dark' } }
    case 'invalid':
      if (told.includes('not valid JSON')) return { text: 'I see.' }
      return { toolCalls: [{ id: 'call_bad', name: 'execute_command', args: '{"command": "ls' }] }
    case 'unknown':
      if (told.includes('There is no tool named')) return { text: 'I see.' }
      return { toolCalls: [{ id: 'call_unknown', name: 'launch_rockets', args: '{}' }] }
    case 'empty':
      return { text: '' }
    case 'refusal':
      return REFUSALS[wire] ?? { text: '' }
    default:
      return { text: 'All is well.' }
  }
}

function run(command: string, id: string) {
  return { id: `call_${id}`, name: 'execute_command', args: JSON.stringify({ command }) }
}

const waits = new Map<string, number>()
const vendors = new Map<string, ScriptedServer>()
let server: Served

beforeAll(async () => {
  for (const { name, start } of WIRES) {
    const otherwise = (request: RecordedRequest): ScriptedReply => {
      // The first request is told to wait, the second succeeds.
      const id = /limited-[\w-]+/.exec(JSON.stringify(request.body))?.[0]
      if (id === undefined || waits.has(id)) return behave(name, request)
      waits.set(id, performance.now())
      return { status: 429, headers: { 'retry-after': '1' }, body: { error: { message: 'slow down' } } }
    }
    vendors.set(name, await start({ otherwise, models: [LISTED[name] ?? {}] }))
  }
  const url = (name: string) => vendors.get(name)?.url ?? ''
  server = await serve({
    ANTHROPIC_API_KEY: TEST_KEY,
    ANTHROPIC_BASE_URL: url('anthropic'),
    GEMINI_API_KEY: TEST_KEY,
    GEMINI_BASE_URL: url('gemini'),
    OPENAI_API_KEY: TEST_KEY,
    OPENAI_BASE_URL: `${url('openai responses')}/v1`,
    OPENAI_COMPATIBLE_BASE_URL: `${url('openai-compatible chat')}/v1`
  })
})
afterAll(async () => {
  await stopServers()
  await Promise.all([...vendors.values()].map((vendor) => vendor.close()))
})

describe.each(WIRES)('$name', ({ name, model }) => {
  async function open(): Promise<Client> {
    const client = server.connect(`wire-${randomUUID()}`, { model })
    expect((await client.ready()).model).toBe(model)
    await client.snapshot()
    return client
  }

  /** Whatever went wrong: the next message is taken and answered. */
  async function goesOn(client: Client): Promise<void> {
    expect(await client.turn('#well')).toMatchObject({ reason: 'done', text: 'All is well.' })
    expect(server.log()).not.toContain(TEST_KEY)
  }

  it('text in odd chunks', async () => {
    const client = await open()
    expect(await client.turn('#odd')).toMatchObject({ reason: 'done', text: ODD })
    const deltas = client.all('agent:delta').map(({ text }) => text)
    expect(deltas.join('')).toBe(ODD)
    expect(client.all('usage')).toMatchObject([{ turnId: 't1', inputTokens: 10, outputTokens: 5 }])
  })

  it('parallel tool calls', async () => {
    const client = await open()
    const { reason, results, text } = await client.turn('#parallel')
    expect(reason).toBe('done')
    expect(results.map(textOf).sort()).toMatchObject([
      expect.stringContaining('made a.txt'),
      expect.stringContaining('made b.txt')
    ])
    expect(text).toBe('On it.\nBoth are there.')
    await goesOn(client)
  })

  // Seen before: "An event of type agent:response has 1200000 bytes".
  it('a file of 1.1 MB, and what comes after it', async () => {
    const client = await open()
    const { reason, results, text } = await client.turn('#large')
    expect(client.all('agent:error')).toEqual([])
    expect(results.map(textOf)).toEqual([expect.stringContaining('1100000 bytes')])
    expect([reason, text.trim()]).toEqual(['done', 'It is written.'])
    await goesOn(client)
  })

  it('an attached image, and the same image read from the workspace', async () => {
    const client = await open()
    const { token = '', sessionId } = await client.ready()
    const image = pngOf(30, 20)
    const upload = { method: 'POST', headers: { 'x-session-token': token }, body: new Uint8Array(image) }
    const added = await fetch(`${server.url}/api/sessions/${sessionId}/attachments`, upload)
    const { id } = (await added.json()) as { id: string }
    const { reason, text } = await client.turn({ text: '#look', attachments: [{ id, name: 'red.png' }] })
    expect([reason, text.trim()]).toEqual(['done', 'It is red.'])
    expect(client.all('files:added')).toMatchObject([{ files: [{ path: 'attachments/red.png', attachment: id }] }])
    expect(client.all('tool:result')).toMatchObject([{ content: [{ type: 'image', file: { id, width: 30 } }] }])
    const [asked = '', shown = ''] = (vendors.get(name)?.requests ?? [])
      .slice(-2)
      .map(({ body }) => JSON.stringify(body))
    const count = (body: string) => body.split(image.toString('base64')).length - 1
    expect([count(asked), count(shown)]).toEqual([1, 2])
    await goesOn(client)
  })

  it('an answer that was cut, retried until it is whole', async () => {
    const client = await open()
    const vendor = vendors.get(name)
    expect((await client.turn('#cut')).reason).toBe('error')
    vendor?.add({ text: 'It was a dark and stormy night.' })
    const from = client.seen.length
    expect(await client.ask('turn:retry', { turnId: 't1' })).toEqual({ ok: true, turnId: 't2' })
    expect(await client.wait('turn:end', undefined, { from })).toMatchObject({ turnId: 't2', reason: 'done' })
    const asked = JSON.stringify(vendor?.requests.at(-1)?.body)
    expect(asked.match(/#cut/g)).toHaveLength(1)
    expect(asked).not.toContain('dark')
    expect(await client.ask('turn:retry', { turnId: 't1' })).toMatchObject({ error: { code: 'not_last_answer' } })
    await goesOn(client)
  })

  it('a 429 is retried after the requested wait, and the user sees it', async () => {
    const client = await open()
    const id = `limited-${randomUUID()}`
    expect(await client.turn(id)).toMatchObject({ reason: 'done', text: 'All is well.' })
    expect(performance.now() - (waits.get(id) ?? 0)).toBeGreaterThan(950)
    const [notice] = client.all('session:notice').filter(({ code }) => code === 'model_waiting')
    expect(notice?.message).toMatch(/rate limited.*1 s/)
    expect(client.all('agent:error')).toEqual([])
  })

  it.each(name === 'gemini' ? ['unknown'] : ['unknown', 'invalid'])(
    'the model is told about a call that can not be run (%s)',
    async (word) => {
      const client = await open()
      expect(await client.turn(`#${word}`)).toMatchObject({ reason: 'done', results: [] })
      expect(client.all('agent:response').at(-1)?.text).toBe('I see.')
      expect(client.all('tool:approval_required')).toEqual([])
      await goesOn(client)
    }
  )

  it('a refusal', async () => {
    const client = await open()
    const { reason, text } = await client.turn('#refusal')
    expect([reason, text]).toEqual(name === 'openai responses' ? ['refused', 'I will not.'] : ['refused', ''])
    await goesOn(client)
  })

  // The last one takes the model off the list.
  it.each([
    ['cut', 'model_stream_cut'],
    ['500', 'model_overloaded'],
    ['529', 'model_overloaded'],
    ['429', 'model_rate_limited'],
    ['empty', 'model_empty_answer'],
    ['401', 'model_key_rejected'],
    ['404', 'model_not_found']
  ])('%s ends as %s', async (word, code) => {
    const client = await open()
    expect((await client.turn(`#${word}`)).reason).toBe('error')
    const [error] = client.all('agent:error')
    expect(error).toMatchObject({ code, turnId: 't1' })
    expect(String(error?.message).length).toBeGreaterThan(20)
    await goesOn(client)
  })
})
