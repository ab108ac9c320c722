import { afterEach, describe, expect, test } from 'vitest'
import type { ScriptedServerOptions } from '../../../tests/fixtures/model-servers/model-reply.ts'
import type { ScriptedServer } from '../../../tests/fixtures/model-servers/scripted-server.ts'
import { TEST_KEY, WIRES, type Wire } from '../../../tests/fixtures/model-servers/wires.ts'
import { recordingLogger } from '../../../tests/support/recording-logger.ts'
import { createModels } from '../create-models.ts'
import type { ModelsOptions } from '../models-options.ts'

const [anthropic, gemini, openai, compatible] = WIRES as [Wire, Wire, Wire, Wire]
const servers: ScriptedServer[] = []
let log: string[] = []
afterEach(async () => {
  expect(log.join('')).not.toContain(TEST_KEY)
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

const LISTS = {
  anthropic: [
    { type: 'model', id: 'claude-old-4', display_name: 'Claude Old 4', created_at: '2025-05-22T00:00:00Z' },
    {
      type: 'model',
      id: 'claude-new-5-20260101',
      alias: 'claude-new-5',
      display_name: 'Claude New 5',
      created_at: '2026-01-01T00:00:00Z',
      max_input_tokens: 200_000,
      max_tokens: 64_000
    }
  ],
  gemini: [
    geminiModel('gemini-2.5-flash'),
    geminiModel('gemini-embedding-001', ['embedContent']),
    geminiModel('gemini-2.5-flash-image'),
    geminiModel('gemini-2.5-flash-preview-tts'),
    geminiModel('imagen-4', ['predict']),
    geminiModel('gemini-3-flash'),
    geminiModel('gemini-4-flash-preview')
  ],
  openai: [
    ...[
      'text-embedding-3-small',
      'whisper-1',
      'tts-1',
      'dall-e-3',
      'gpt-image-1',
      'gpt-4o-audio-preview',
      'davinci-002'
    ],
    ...[
      'gpt-4o-realtime-preview',
      'omni-moderation-latest',
      'gpt-4o-transcribe',
      'gpt-4o-search-preview',
      'babbage-002'
    ],
    ...['gpt-3.5-turbo-instruct', 'sora-2', 'gpt-9-pro', 'gpt-8', 'gpt-9', 'o9-mini']
  ].map((id, index) => ({ id, object: 'model', created: 1_700_000_000 + index, owned_by: 'openai' })),
  compatible: [
    { id: 'openai/gpt-oss-20b', object: 'model', created: 5, max_model_len: 32_768 },
    { id: 'nomic-embed-text', object: 'model', created: 9 },
    { id: 'llama3:latest', object: 'model', created: 7, architecture: { input_modalities: ['text', 'image'] } }
  ]
}

function geminiModel(id: string, methods = ['generateContent', 'countTokens']) {
  return {
    name: `models/${id}`,
    displayName: id.toUpperCase(),
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: methods
  }
}

async function start(wire: Wire, options: ScriptedServerOptions): Promise<Partial<ModelsOptions>> {
  const server = await wire.start(options)
  servers.push(server)
  return wire.options(server.url)
}

function models(options: Partial<ModelsOptions>) {
  log = []
  return createModels({ ...options, logger: recordingLogger(log), timeouts: { detectMs: 5_000, ...options.timeouts } })
}

const idsOf = (catalog: { models: { id: string }[] }) => catalog.models.map(({ id }) => id)

test('without any key there is the demo model', async () => {
  expect(await models({}).catalog()).toEqual({
    default: 'demo/demo',
    models: [{ id: 'demo/demo', provider: 'demo', name: expect.stringContaining('Demo'), inputs: expect.anything() }],
    providers: [{ id: 'demo', ok: true }]
  })
})

describe('what is offered', () => {
  test('anthropic: all models, newest first, with their context size', async () => {
    const catalog = await models(await start(anthropic, { models: LISTS.anthropic, apiKey: TEST_KEY })).catalog()
    expect(idsOf(catalog)).toEqual(['anthropic/claude-new-5-20260101', 'anthropic/claude-old-4', 'demo/demo'])
    expect(catalog.models[0]).toMatchObject({ name: 'Claude New 5', contextTokens: 200_000 })
    expect(catalog.default).toBe('anthropic/claude-new-5-20260101')
    expect(servers[0]?.listRequests[0]?.headers).toMatchObject({ 'anthropic-version': '2023-06-01' })
  })

  test('gemini: models that can chat, by version, previews last', async () => {
    const catalog = await models(await start(gemini, { models: LISTS.gemini, apiKey: TEST_KEY })).catalog()
    expect(idsOf(catalog)).toEqual([
      'gemini/gemini-3-flash',
      'gemini/gemini-2.5-flash',
      'gemini/gemini-4-flash-preview',
      'demo/demo'
    ])
  })

  test('openai: models that can chat, newest first, special variants last', async () => {
    const catalog = await models(await start(openai, { models: LISTS.openai, apiKey: TEST_KEY })).catalog()
    expect(idsOf(catalog)).toEqual(['openai/gpt-9', 'openai/gpt-8', 'openai/o9-mini', 'openai/gpt-9-pro', 'demo/demo'])
  })

  test("compatible: in the server's order, without embedding models, even without a key", async () => {
    const server = await compatible.start({ models: LISTS.compatible })
    servers.push(server)
    const catalog = await models({ openaiCompatible: { baseUrl: `${server.url}/v1/` } }).catalog()
    expect(idsOf(catalog)).toEqual([
      'openai-compatible/openai/gpt-oss-20b',
      'openai-compatible/llama3:latest',
      'demo/demo'
    ])
    expect(catalog.models[0]?.contextTokens).toBe(32_768)
    expect(catalog.models.map(({ inputs }) => inputs?.images)).toEqual([undefined, true, false])
    expect(server.listRequests[0]?.headers.authorization).toBeUndefined()
  })

  test.each([anthropic, gemini])('$name: all pages are read', async (wire) => {
    const many = Array.from({ length: 7 }, (_, i) =>
      wire === gemini ? geminiModel(`gemini-${i}-flash`) : { id: `claude-${i}`, display_name: `Claude ${i}` }
    )
    const catalog = await models(await start(wire, { models: many, pageSize: 3 })).catalog()
    expect(catalog.models).toHaveLength(8)
    expect(servers[0]?.listRequests).toHaveLength(3)
  })

  test('an endless list is abandoned after some pages', async () => {
    const endless = Array.from({ length: 500 }, (_, i) => ({ id: `claude-${i}` }))
    const catalog = await models(await start(anthropic, { models: endless, pageSize: 1 })).catalog()
    expect(catalog.models.length).toBeLessThan(100)
  })
})

describe('a provider that fails', () => {
  const unused = 'http://127.0.0.1:9'
  test.each([
    ['a bad key', { apiKey: 'another' }, /rejected the key.*_API_KEY/],
    ['a server error', { models: { status: 500, body: `broken ${TEST_KEY}` } }, /500/],
    ['no such list', { models: { status: 404 } }, /404.*_BASE_URL/],
    ['a web page', { models: { status: 200, body: '<html>' } }, /did not answer with a list of models.*_BASE_URL/],
    ['other JSON', { models: { status: 200, body: { data: 'x', models: 'y' } } }, /did not answer with a list/],
    ['a redirect', { models: { status: 302, headers: { location: unused } } }, /redirect/],
    ['too much', { models: { status: 200, body: 'x'.repeat(5_000_000) } }, /did not answer with a list/],
    ['nothing to chat with', { models: [] }, /no model that can chat/]
  ] as [string, ScriptedServerOptions, RegExp][])('%s becomes a sentence', async (_, options, sentence) => {
    for (const wire of WIRES) {
      const catalog = await models(await start(wire, options)).catalog()
      expect(catalog.providers[0], wire.name).toMatchObject({ ok: false, reason: expect.stringMatching(sentence) })
      expect(JSON.stringify(catalog)).not.toContain(TEST_KEY)
      expect(catalog.default).toBe('demo/demo')
    }
  })

  test('does not hide the others, and delays nobody beyond the deadline', async () => {
    const options = {
      ...(await start(anthropic, { models: { hang: 'before-headers' } })),
      ...(await start(gemini, { models: { hang: 'after-headers' } })),
      ...(await start(openai, { models: LISTS.openai })),
      ...compatible.options(unused),
      timeouts: { detectMs: 2000 }
    }
    // Without a deadline it would wait for ever.
    const catalog = await models(options).catalog()
    expect(catalog.providers).toMatchObject([
      { id: 'anthropic', ok: false, reason: expect.stringMatching(/Waited 2 s/) },
      { id: 'gemini', ok: false, reason: expect.stringMatching(/Waited 2 s/) },
      { id: 'openai', ok: true },
      { id: 'openai-compatible', ok: false, reason: expect.stringMatching(/can't be reached at http:\/\/127.0.0.1:9/) },
      { id: 'demo', ok: true }
    ])
    expect(catalog.default).toBe('openai/gpt-9')
  })
})

describe('the default', () => {
  const both = async () => ({
    ...(await start(anthropic, { models: LISTS.anthropic })),
    ...(await start(openai, { models: LISTS.openai }))
  })

  test.each([
    [{}, 'anthropic/claude-new-5-20260101'],
    [{ provider: 'openai' }, 'openai/gpt-9'],
    [{ provider: 'demo' }, 'demo/demo'],
    [{ model: 'gpt-8' }, 'openai/gpt-8'],
    [{ model: 'openai/gpt-8' }, 'openai/gpt-8'],
    [{ model: 'claude/claude-old-4' }, 'anthropic/claude-old-4'],
    [{ provider: 'anthropic', model: 'claude-old-4' }, 'anthropic/claude-old-4'],
    [{ provider: 'anthropic', model: 'claude-new-5' }, 'anthropic/claude-new-5'],
    [{ provider: 'anthropic', model: 'gpt-8' }, 'anthropic/claude-new-5-20260101']
  ] as [Partial<ModelsOptions>, string][])('%o: %s', async (requested, expected) => {
    expect((await models({ ...(await both()), ...requested }).catalog()).default).toBe(expected)
  })

  test('a model that is not offered is reported with its provider', async () => {
    const { providers } = await models({ ...(await both()), provider: 'openai', model: 'gpt-77' }).catalog()
    expect(providers[1]).toMatchObject({
      id: 'openai',
      ok: true,
      reason: expect.stringContaining('"gpt-77" (LLM_MODEL)')
    })
    expect(providers[0]).not.toHaveProperty('reason')
  })

  test('an id with slashes of a compatible server', async () => {
    const options = await start(compatible, { models: LISTS.compatible })
    const requested = { provider: 'openai-compatible' as const, model: 'openai/gpt-oss-20b' }
    expect((await models({ ...options, ...requested }).catalog()).default).toBe('openai-compatible/openai/gpt-oss-20b')
  })

  test('a configured provider without a key, or that fails, leads to the demo model, with the reason', async () => {
    const keyless = await models({ provider: 'gemini' }).catalog()
    expect(keyless.default).toBe('demo/demo')
    expect(keyless.providers[0]).toMatchObject({
      id: 'gemini',
      ok: false,
      reason: expect.stringContaining('GEMINI_API_KEY')
    })
    const broken = await start(openai, { models: { status: 500 } })
    const others = await start(anthropic, { models: LISTS.anthropic })
    expect((await models({ ...broken, ...others, provider: 'openai' }).catalog()).default).toBe('demo/demo')
  })
})

describe('resolve', () => {
  test('finds full ids, aliases and bare ids; otherwise the error says what to do', async () => {
    const offered = models({
      ...(await start(anthropic, { models: LISTS.anthropic })),
      ...(await start(openai, { models: { status: 500 } }))
    })
    expect(await offered.resolve(undefined)).toBe('anthropic/claude-new-5-20260101')
    expect(await offered.resolve('claude/claude-old-4')).toBe('anthropic/claude-old-4')
    expect(await offered.resolve('claude-old-4')).toBe('anthropic/claude-old-4')
    expect(await offered.resolve('demo/demo')).toBe('demo/demo')
    await expect(offered.resolve('anthropic/nope')).rejects.toMatchObject({ kind: 'invalid', code: 'model_unknown' })
    await expect(offered.resolve('openai/gpt-9')).rejects.toThrow(/answered 500/)
  })

  test('detection runs once for many callers, and again on request', async () => {
    const options = await start(openai, { models: LISTS.openai })
    const offered = models(options)
    await Promise.all(Array.from({ length: 20 }, () => offered.catalog()))
    expect(servers[0]?.listRequests).toHaveLength(1)
    await offered.catalog({ refresh: true })
    expect(servers[0]?.listRequests).toHaveLength(2)
  })
})
