import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionSummary } from '../../contract/rest.ts'
import { startAnthropicServer } from '../fixtures/model-servers/anthropic-server.ts'
import { TEST_KEY } from '../fixtures/model-servers/wires.ts'
import { browserOf } from '../support/browser-owner.ts'
import type { Client } from '../support/client.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { testRedisEnv } from '../support/test-redis.ts'
import { textOf } from '../support/text-of.ts'

let a: Served
let b: Served
let env: Record<string, string>

async function startBoth(more: Record<string, string> = {}): Promise<void> {
  const dataDir = temporaryFolder()
  env = { ...(await testRedisEnv()), ...more }
  ;[a, b] = await Promise.all([serve(env, { dataDir }), serve(env, { dataDir })])
}

async function tabs(): Promise<{ id: string; onA: Client; onB: Client; token: string | undefined }> {
  const id = `both-${randomUUID()}`
  const onA = a.connect(id)
  const { token } = await onA.ready()
  await onA.snapshot()
  const onB = b.connect(id, { token })
  await onB.snapshot()
  return { id, onA, onB, token }
}

const approve = (tab: Client, callId: unknown) => tab.ask('tool:approval', { callId, approved: true })

afterAll(stopServers)

describe('two instances on one Redis', () => {
  beforeAll(() => startBoth())

  it('serve the tabs of one session: each sees all that happens, live output and deltas too', async () => {
    const { onA, onB, id } = await tabs()
    expect(await b.connect(id).refused()).toBe('forbidden')
    const { results } = await onA.turn('run echo from a')
    expect(textOf(results[0])).toContain('from a')
    await onB.wait('turn:end')
    expect(onB.all('agent:delta').map(({ text }) => text)).toEqual(onA.all('agent:delta').map(({ text }) => text))
    expect(onB.all('tool:output')).toEqual(onA.all('tool:output'))
    const stored = (tab: Client) =>
      tab.seen.filter(({ data }) => typeof data.at === 'number').map(({ event, data }) => [data.seq, event])
    expect(stored(onB)).toEqual(stored(onA))
    // And the other way round; the sandbox and its files move to the instance that works.
    const from = onA.seen.length
    expect(textOf((await onB.turn('write b.txt: from b')).results[0])).toBeTruthy()
    await onA.wait('turn:end', undefined, { from })
    expect(await onA.sh('cat b.txt')).toContain('from b')
  })

  it('tell all tabs of an owner, and nobody else, what changes in the other sessions', async () => {
    const [first, second] = [`one-${randomUUID()}`, `two-${randomUUID()}`]
    const browser = randomUUID()
    const [onA, onB, stranger] = [
      a.connect(first, { browser }),
      b.connect(second, { browser }),
      b.connect(`other-${randomUUID()}`, { browser: randomUUID() })
    ]
    await Promise.all([onA, onB, stranger].map((tab) => tab.snapshot()))
    const ofFirst = (fits: (summary: SessionSummary | null) => boolean) =>
      onB.wait('session:changed', ({ sessionId, summary }) => {
        return sessionId === first && fits(summary as SessionSummary | null)
      })
    const [card] = await onA.cards('run echo hello')
    await ofFirst((summary) => summary?.waiting?.[0]?.args.command === 'echo hello' && summary.pendingApprovals === 1)
    await approve(onA, card?.callId)
    await ofFirst((summary) => summary?.pendingApprovals === 0 && summary.waiting === undefined)
    await onA.wait('turn:end', ({ turnId }) => turnId === 't1')
    const { headers } = browserOf(browser, a.url)
    const change = (change: object) =>
      fetch(`${a.url}/api/sessions/${first}`, {
        method: 'PATCH',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(change)
      })
    expect((await change({ title: 'Renamed', isPinned: true })).status).toBe(200)
    await ofFirst((summary) => summary?.title === 'Renamed' && summary.isPinned)
    expect((await change({ isArchived: 'yes' })).status).toBe(400)
    expect((await change({ isArchived: true })).status).toBe(200)
    await ofFirst((summary) => summary?.isArchived === true)
    const from = onB.seen.length
    expect(await onA.ask('message', { text: 'hello again' })).toMatchObject({ ok: true })
    await onB.wait('session:changed', ({ summary }) => (summary as SessionSummary | null)?.isArchived === false, {
      from
    })
    await onA.wait('turn:end', ({ turnId }) => turnId === 't2')
    await fetch(`${a.url}/api/sessions/${first}`, { method: 'DELETE', headers })
    await ofFirst((summary) => summary === null)
    expect(stranger.all('session:changed').filter(({ sessionId }) => sessionId === first)).toEqual([])
  })

  it('run an approval that came in through one when the call before it, which the other runs, has ended', async () => {
    const { onA, onB } = await tabs()
    const cards = await onA.cards('run echo begun; sleep 4; echo slow done\nrun echo quick done', 2)
    await approve(onA, cards[0]?.callId)
    await onA.wait('tool:output', ({ text }) => String(text).includes('begun'))
    expect(await approve(onB, cards[1]?.callId)).toEqual({ ok: true })
    await onB.wait('turn:end')
    await onA.wait('turn:end')
    const ran = (tab: Client) =>
      tab.seen.flatMap(({ event, data }) => (/tool:(started|result)/.test(event) ? [`${event} ${data.callId}`] : []))
    const inOrder = cards.flatMap(({ callId }) => [`tool:started ${callId}`, `tool:result ${callId}`])
    expect([ran(onA), ran(onB)]).toEqual([inOrder, inOrder])
    expect(onB.all('tool:result').map(textOf)).toEqual([
      expect.stringContaining('slow done'),
      expect.stringContaining('quick done')
    ])
  })

  it('of two answers given at the same time through both, one counts', async () => {
    const { onA, onB } = await tabs()
    const [card] = await onA.cards('run echo once >> log.txt; cat log.txt')
    const answers = await Promise.all([approve(onA, card?.callId), approve(onB, card?.callId)])
    expect(answers.map(({ ok }) => ok).sort()).toEqual([false, true])
    await onA.wait('turn:end')
    expect(textOf(onA.all('tool:result')[0]).match(/once/g)).toHaveLength(1)
    expect(onA.all('tool:started')).toHaveLength(1)
  })

  it('stop a command that runs in one when the other is asked to', async () => {
    const { id, onA, onB, token } = await tabs()
    const [card] = await onA.cards('run echo begun; sleep 60')
    await approve(onA, card?.callId)
    await onA.wait('tool:output', ({ text }) => String(text).includes('begun'))
    const late = await b.connect(id, { token }).wait('tool:output_so_far')
    expect(late).toEqual({ callId: card?.callId, chunks: [{ stream: 'stdout', text: 'begun\n' }], at: 0 })
    const asked = performance.now()
    expect(await onB.ask('turn:cancel')).toEqual({ ok: true })
    await onB.wait('tool:result', ({ callId }) => callId === card?.callId)
    expect(performance.now() - asked).toBeLessThan(30_000)
    expect(await onB.sh('pgrep -x sleep || echo none')).toMatch(/^none/)
  })

  it('delete a session that the other is working in, and disconnect its tabs', async () => {
    const { id, onA, onB, token } = await tabs()
    const [card] = await onA.cards('run echo begun; sleep 60')
    await approve(onA, card?.callId)
    await onB.wait('tool:output', ({ text }) => String(text).includes('begun'))
    const headers = { 'x-session-token': token ?? '' }
    const gone = await fetch(`${b.url}/api/sessions/${id}`, { method: 'DELETE', headers })
    expect(gone.status).toBe(204)
    await Promise.all([onA.wait('disconnect'), onB.wait('disconnect')])
    const fresh = a.connect(id)
    expect((await fresh.snapshot()).transcript.turns).toBe(0)
  })

  // The last one: the others need both.
  it('continue a turn when the one that drove it is killed', async () => {
    const { id, onA, onB, token } = await tabs()
    const [card] = await onA.cards('run echo once | tee -a log.txt; sleep 60')
    await approve(onA, card?.callId)
    await onB.wait('tool:output', ({ text }) => String(text).includes('once'))
    await a.kill9()
    // The page whose connection broke comes back through the other.
    b.connect(id, { token })
    expect(await onB.wait('tool:result')).toMatchObject({ callId: card?.callId, outcome: 'unknown' })
    await onB.wait('turn:end', ({ reason }) => reason === 'done')
    expect(await onB.sh('cat log.txt; pgrep -x sleep || echo none')).toMatch(/^once\s+none/)
  })
})

describe('a model that streams on one instance', () => {
  it('is shown from its beginning to tabs that connect later, and its text stays when the other instance stops it', async () => {
    const text = Array.from({ length: 50 }, (_, at) => `word ${at} `)
    const vendor = await startAnthropicServer({
      otherwise: () => ({ text, delivery: { stopAfter: 'word 40', ending: 'hang' } }),
      models: [{ type: 'model', id: 'claude-test', display_name: 'Claude', created_at: '2026-01-01' }]
    })
    await startBoth({ LLM_PROVIDER: 'anthropic', ANTHROPIC_API_KEY: TEST_KEY, ANTHROPIC_BASE_URL: vendor.url })
    const { id, onA, onB, token } = await tabs()
    await onA.ask('message', 'talk')
    await onB.wait('agent:delta', ({ text: delta }) => String(delta).includes('word 40'))
    const said = text.slice(0, 41).join('')
    for (const instance of [a, b]) {
      const late = instance.connect(id, { token })
      expect((await late.wait('agent:text')).text).toBe(said)
    }
    await onB.ask('turn:cancel')
    expect(await vendor.requests[0]?.closed).toEqual({ early: true })
    await onA.wait('turn:end', ({ reason }) => reason === 'cancelled')
    expect(await onB.wait('agent:response')).toMatchObject({ text: said, partial: 'stopped' })
    expect((await onB.wait('usage')).outputTokens).toBeGreaterThan(50)
    const { entries } = (await b.connect(id, { token }).snapshot()).transcript
    expect(entries.at(-1)).toMatchObject({ kind: 'agent', text: said, partial: 'stopped' })
    await vendor.close()
  })
})
