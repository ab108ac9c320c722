import { randomUUID } from 'node:crypto'
import { afterAll, describe, expect, it } from 'vitest'
import { startAnthropicServer } from '../fixtures/model-servers/anthropic-server.ts'
import { TEST_KEY } from '../fixtures/model-servers/wires.ts'
import type { Client } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { textOf } from '../support/text-of.ts'

afterAll(stopServers)

const newId = () => `many-${randomUUID()}`

async function open(server: Served, options: Parameters<Served['connect']>[1] = {}, id = newId()) {
  const client = server.connect(id, options)
  const { token } = await client.ready()
  await client.snapshot()
  return { id, client, token }
}

const since = (client: Client, from: number, event: string) =>
  client.seen
    .slice(from)
    .filter((item) => item.event === event)
    .map(({ data }) => data)

describe('20 sessions at once', () => {
  it('chat with a tool call each: all correct, and no event of one in another', async () => {
    const server = await serve({ WARM_POOL_SIZE: '2', MAX_SESSIONS: '100' })
    const sessions = await Promise.all(Array.from({ length: 20 }, () => open(server)))
    const turns = await Promise.all(
      sessions.map(({ client, id }) => client.turn(`run echo mark-${id} | tee mark.txt; ls | wc -l`))
    )
    for (const [at, { client, id }] of sessions.entries()) {
      const why = JSON.stringify([client.all('session:notice'), client.all('agent:error')])
      expect(turns[at], why).toMatchObject({ reason: 'done', results: [{ isError: false }] })
      expect(textOf(turns[at]?.results[0])).toMatch(new RegExp(`^mark-${id}\\s+1\\s`))
      const everything = JSON.stringify(client.seen)
      expect(everything).toContain(`mark-${id}`)
      for (const other of sessions) if (other.id !== id) expect(everything).not.toContain(other.id)
    }
    await server.stop()
  }, 300_000)
})

describe('stopping', () => {
  it('a command of 60 s: ends at once, and its processes are gone', async () => {
    const server = await serve()
    const { client } = await open(server)
    const [card] = await client.cards('run echo begun; (sleep 61 & sleep 62 & sleep 60)')
    await client.ask('tool:approval', { callId: card?.callId, approved: true })
    await client.wait('tool:output', ({ text }) => String(text).includes('begun'))
    const asked = performance.now()
    expect(await client.ask('turn:cancel')).toEqual({ ok: true })
    await client.wait('turn:end', ({ reason }) => reason === 'cancelled')
    await client.wait('tool:result', ({ callId }) => callId === card?.callId)
    expect(performance.now() - asked).toBeLessThan(30_000)
    expect(await client.sh('pgrep -x sleep || echo none')).toMatch(/^none/)
    await server.stop()
  })

  it('the model while it streams: its stream ends, that of the vendor too, and the next message is taken', async () => {
    const text = Array.from({ length: 400 }, (_, at) => `word ${at} `)
    const endless = { text, delivery: { chunkBytes: 60, stopAfter: 'word 300', ending: 'hang' as const } }
    const vendor = await startAnthropicServer({ replies: [endless, { text: 'here again' }], models: MODELS })
    const server = await serve({
      ANTHROPIC_API_KEY: TEST_KEY,
      ANTHROPIC_BASE_URL: vendor.url,
      LLM_PROVIDER: 'anthropic'
    })
    const { client } = await open(server)
    await client.ask('message', 'talk')
    await client.wait('agent:delta', ({ text }) => String(text).includes('word'))
    await client.ask('turn:cancel')
    await client.wait('turn:end', ({ reason }) => reason === 'cancelled')
    // It hangs there, so only we can close it.
    expect(await vendor.requests[0]?.closed).toEqual({ early: true })
    const quietFrom = client.seen.length
    expect(await client.turn('again')).toMatchObject({ reason: 'done', text: 'here again' })
    expect(since(client, quietFrom, 'agent:delta').map(({ turnId }) => turnId)).not.toContain('t1')
    expect(client.all('agent:error')).toEqual([])
    await Promise.all([server.stop(), vendor.close()])
  })

  it('the server, while a model hangs: it ends within seconds, and the turn continues at the next start', async () => {
    const vendor = await startAnthropicServer({ replies: [{ hang: 'after-headers' }], models: MODELS })
    const env = { ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: vendor.url, LLM_PROVIDER: 'anthropic' }
    const first = await serve(env)
    const { id, client, token } = await open(first)
    await client.ask('message', 'are you there?')
    await eventually('the model was asked', () => vendor.requests.length === 1)
    const asked = performance.now()
    await first.stop()
    expect(performance.now() - asked).toBeLessThan(30_000)
    vendor.add({ text: 'now I am' })
    const second = await serve(env, { port: first.port, dataDir: first.dataDir })
    const back = second.connect(id, { token })
    await back.wait('turn:end', ({ reason }) => reason === 'done')
    expect(back.all('agent:response')).toMatchObject([{ text: 'now I am' }])
    await Promise.all([second.stop(), vendor.close()])
  })
})

const MODELS = ['claude-a', 'claude-b'].map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01' }))

describe('two tabs on different models', () => {
  it('switch for each other; automatic reconnects wipe nobody’s history', async () => {
    const vendor = await startAnthropicServer({ otherwise: () => ({ text: 'ok' }), models: MODELS })
    const server = await serve({ ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: vendor.url })
    const { id, client: a, token } = await open(server, { model: 'anthropic/claude-a', reconnects: true })
    await a.turn('first, to a')
    const b = server.connect(id, { token, model: 'anthropic/claude-b', reconnects: true })
    expect((await b.ready()).model).toBe('anthropic/claude-b')
    // The other tab hears of it, and sees where the fresh history begins; the old conversation stays readable.
    await a.wait('system:ready', ({ model }) => model === 'anthropic/claude-b')
    const { transcript } = await b.snapshot()
    expect(transcript.entries.map(({ kind }) => kind)).toEqual(['user', 'agent', 'fresh-start'])
    await b.turn('second, to b')

    for (const tab of [a, b, a, b]) {
      const from = tab.seen.length
      tab.socket.io.engine.close()
      await tab.wait('session:snapshot', undefined, { from })
    }
    await a.turn('third, to b')
    expect(vendor.requests.at(-1)?.body).toMatchObject({ model: 'claude-b' })
    expect(JSON.stringify(vendor.requests.at(-1)?.body)).toContain('second, to b')
    expect(JSON.stringify(vendor.requests.at(-1)?.body)).not.toContain('first, to a')
    const log = await server.events(id)
    expect(log.filter(({ type }) => type === 'model:selected')).toHaveLength(2)
    await Promise.all([server.stop(), vendor.close()])
  })

  it('a switch stops the turn; a reset starts afresh; a model that does not work is refused', async () => {
    const [good] = MODELS
    const vendor = await startAnthropicServer({
      otherwise: ({ body }) =>
        (body as { model: string }).model === 'claude-a' ? { text: 'ok' } : { status: 404, body: {} },
      models: [good ?? {}, ...MODELS.slice(1)]
    })
    const server = await serve({ ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: vendor.url })
    const { id, client, token } = await open(server)
    const tab = server.connect(id, { token })
    await tab.snapshot()
    const [card] = await client.cards('run echo never')
    expect(await client.ask('model:select', { model: 'nobody/knows' })).toMatchObject({
      error: { code: 'model_unknown' }
    })
    expect(await client.ask('model:select', { model: 'anthropic/claude-b' })).toMatchObject({
      error: { code: 'model_not_found' }
    })
    expect(client.all('turn:end')).toEqual([])
    expect(await client.ask('model:select', { model: 'anthropic/claude-a' })).toEqual({
      ok: true,
      model: 'anthropic/claude-a'
    })
    await tab.wait('system:ready', ({ model }) => model === 'anthropic/claude-a')
    expect(await tab.wait('turn:end')).toMatchObject({ reason: 'cancelled' })
    expect(await client.ask('tool:approval', { callId: card?.callId, approved: true })).toMatchObject({ ok: false })
    await client.turn('one')
    expect(await tab.ask('history:reset')).toEqual({ ok: true })
    await client.wait('history:reset')
    await client.turn('two')
    const told = JSON.stringify(vendor.requests.at(-1)?.body)
    expect(told).toContain('"two"')
    expect(told).not.toContain('"one"')
    // A tab that requests a broken model gets the current one, and a notice.
    const wish = server.connect(id, { token, model: 'anthropic/claude-b' })
    expect((await wish.ready()).model).toBe('anthropic/claude-a')
    await client.wait('session:notice', ({ code }) => code === 'model_not_chosen')
    await Promise.all([server.stop(), vendor.close()])
  })
})

describe('a recycled sandbox', () => {
  it('is replaced, with the files, when a pending approval is answered, and the user is told', async () => {
    const server = await serve({ SESSION_IDLE_SECONDS: '2', JANITOR_INTERVAL_SECONDS: '1' })
    const { id, client } = await open(server)
    await client.turn('write kept.txt: still here')
    const [card, write] = await client.cards('run cat kept.txt\nwrite kept.txt: changed', 2)
    expect(write?.target).toMatchObject({ path: '/workspace/kept.txt', is: 'file' })
    await client.wait('session:notice', ({ code }) => code === 'sandbox_recycled')
    await client.wait('session:state', ({ sandbox }) => sandbox === 'recycled')
    expect(await client.ask('tool:approval', { callId: card?.callId, approved: true })).toEqual({ ok: true })
    const result = await client.wait('tool:result', ({ callId }) => callId === card?.callId)
    expect(textOf(result)).toContain('still here')
    const log = (await server.events(id)).map(({ type, data }) => (type === 'session:notice' ? data.code : type))
    expect(log.indexOf('files_restored')).toBeGreaterThan(log.indexOf('sandbox_recycled'))
    expect(log.indexOf('files_restored')).toBeLessThan(log.lastIndexOf('tool:started'))
    // The approved target is checked again in the new sandbox, and is the same there.
    await client.ask('tool:approval', { callId: write?.callId, approved: true, hash: write?.hash })
    expect(await client.wait('tool:result', ({ callId }) => callId === write?.callId)).toMatchObject({ isError: false })
    await server.stop()
  })
})
