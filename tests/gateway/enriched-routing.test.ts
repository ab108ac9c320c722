import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { startEmbeddingServer } from '../fixtures/model-servers/embedding-server.ts'
import { startOpenAiServer } from '../fixtures/model-servers/openai-server.ts'
import { type GatewayProcessOptions, startGateway } from '../support/gateway-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const GERMAN = 'brauche ich morgen draußen einen Schirm?'
const FRENCH = 'prévenir ma collègue par courriel'
const KEY = 'sk-not-to-be-seen-0123456789'
const TOOLS = {
  send_email: 'Send an email with subject and body',
  current_weather: 'Current weather of a city',
  list_tables: 'List all tables of the database',
  play_song: 'Play a song',
  book_flight: 'Book a flight',
  read_pages: 'Read the pages of a document'
}
const TOPICS = [['email', 'courriel'], ['weather', 'schirm'], ['tables'], ['song'], ['flight'], ['document']]

const data = (result: Record<string, unknown>) => result.structuredContent as Record<string, unknown>
const until = (check: () => unknown) => vi.waitFor(check)

function folder(): string {
  const dir = temporaryFolder()
  closers.push(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

async function start(options: GatewayProcessOptions, tools: Record<string, string> = TOOLS) {
  const gateway = await startGateway({ desk: child('described', [JSON.stringify(tools)]) }, options)
  const end = gateway.end
  let ended: Promise<void> | undefined
  const endOnce = () => {
    ended ??= end()
    return ended
  }
  closers.push(endOnce)
  const find = async (query: string) => data(await gateway.call('find_tool', { query }))
  return { ...gateway, end: endOnce, find }
}

async function embeddings() {
  const model = await startEmbeddingServer(TOPICS)
  closers.push(() => model.close())
  const env = {
    EMBEDDING_MODEL: 'openai-compatible/small',
    OPENAI_COMPATIBLE_BASE_URL: model.url,
    OPENAI_COMPATIBLE_API_KEY: KEY,
    LLM_PROVIDER: 'demo'
  }
  return { model, env }
}

describe('requests in other languages', { timeout: 60_000 }, () => {
  it('are not guessed at without a model', async () => {
    const { find } = await start({})
    expect(await find(GERMAN)).toMatchObject({ abstained: true })
    expect(await find(FRENCH)).toMatchObject({ abstained: true })
  })

  it('are answered with embeddings, which are asked for once per definition, also over a restart', async () => {
    const { model, env } = await embeddings()
    const DATA_DIR = folder()
    const first = await start({ env: { ...env, DATA_DIR } })
    await until(async () => expect((await first.find(GERMAN)).abstained).toBe(false))
    expect(await first.find(GERMAN)).toMatchObject({ matches: [{ tool: 'current_weather' }] })
    // Found by meaning, but not run: negations and conditions are understood in English only.
    const found = JSON.parse(textOf(await first.call('execute', { request: FRENCH })))
    expect(found).toMatchObject({ status: 'needs_confirmation', server: 'desk', tool: 'send_email' })
    expect(textOf(await first.call('execute', { request: FRENCH, server: 'desk', tool: 'send_email' }))).toBe(
      'send_email'
    )
    const asked = model.inputs.flat()
    expect(asked.filter((text) => text.includes('Current weather'))).toHaveLength(1)
    expect(asked.filter((text) => text === GERMAN)).toHaveLength(1)
    expect(model.keys).toContain(`Bearer ${KEY}`)
    await first.end()

    model.inputs.length = 0
    const second = await start({ env: { ...env, DATA_DIR } })
    expect(await second.find(GERMAN)).toMatchObject({ abstained: false, matches: [{ tool: 'current_weather' }] })
    expect(model.inputs).toEqual([[GERMAN]])
    // Words that are sure are not sent anywhere.
    expect(await second.find('use list_tables')).toMatchObject({ matches: [{ tool: 'list_tables' }] })
    expect(model.inputs).toEqual([[GERMAN]])
    await second.end()
    for (const name of readdirSync(DATA_DIR, { recursive: true, encoding: 'utf8', withFileTypes: true })) {
      if (name.isFile()) expect(readFileSync(join(name.parentPath, name.name)).includes(KEY), name.name).toBe(false)
    }
  })
})

describe('an embedding model in trouble', { timeout: 60_000 }, () => {
  it.each(['error', 'nonsense', 'silent'] as const)('is gone without (%s)', async (mode) => {
    const { model, env } = await embeddings()
    const { find, call, stderr } = await start({ env })
    await until(async () => expect((await find(GERMAN)).abstained).toBe(false))
    model.mode = mode
    expect(await find(FRENCH)).toMatchObject({ abstained: true })
    expect(await find('send an email')).toMatchObject({ matches: [{ tool: 'send_email' }] })
    // One that failed is not waited for again at once.
    const asked = model.inputs.length
    expect(await find(`${FRENCH} encore`)).toMatchObject({ abstained: true })
    expect(model.inputs).toHaveLength(asked)
    expect(textOf(await call('execute', { server: 'desk', tool: 'play_song' }))).toBe('play_song')
    await until(() =>
      expect(
        stderr()
          .split('\n')
          .filter((line) => line.includes('without embeddings'))
      ).toHaveLength(1)
    )
    expect(stderr()).not.toContain(KEY)
  })
})

describe('example requests', { timeout: 60_000 }, () => {
  it('are written once per definition by the configured model, count, and are shown', async () => {
    const model = await startOpenAiServer({
      models: [{ id: 'vendor/llama-test', object: 'model' }],
      otherwise: ({ body }) => ({
        text: JSON.stringify(body).includes('Starts a session')
          ? `Sure:\n["ring up my\\nbrother", "ring the office", "${'x'.repeat(500)}", 7, "a b", "too many", "more"]`
          : 'I would rather not.'
      })
    })
    closers.push(() => model.close())
    const DATA_DIR = folder()
    const env = {
      DATA_DIR,
      ROUTING_EXAMPLES: 'true',
      OPENAI_COMPATIBLE_BASE_URL: `${model.url}/v1`,
      LLM_PROVIDER: 'openai-compatible'
    }
    const tools = { ...TOOLS, dial: 'Starts a session' }
    const first = await start({ env }, tools)
    const rings = { matches: [{ tool: 'dial' }] }
    await until(async () => expect(await first.find('ring my grandmother')).toMatchObject(rings))
    const explained = data(await first.call('explain_tool', { server: 'desk', tool: 'dial' }))
    expect(explained.exampleRequests).toEqual(['ring up my brother', 'ring the office', 'x'.repeat(120), 'a b'])
    await until(() => expect(model.requests).toHaveLength(Object.keys(tools).length))
    await first.end()

    const second = await start({ env }, tools)
    expect(await second.find('ring my grandmother')).toMatchObject(rings)
    await second.end()
    expect(model.requests).toHaveLength(Object.keys(tools).length)
  })

  it('are not asked for unless that is switched on', async () => {
    const model = await startOpenAiServer({ models: [{ id: 'vendor/llama-test', object: 'model' }] })
    closers.push(() => model.close())
    const env = { OPENAI_COMPATIBLE_BASE_URL: `${model.url}/v1`, LLM_PROVIDER: 'openai-compatible' }
    const { find, end } = await start({ env })
    await find(GERMAN)
    await end()
    expect([...model.requests, ...model.listRequests]).toEqual([])
  })
})
