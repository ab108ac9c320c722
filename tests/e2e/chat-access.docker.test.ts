import { randomUUID } from 'node:crypto'
import { type AddressInfo, connect, createServer } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OWNER_COOKIE, OWNER_PROOF_HEADER, ownerCookieName } from '../../server/lib/web/browser-proof.ts'
import { browserOf } from '../support/browser-owner.ts'
import { type Client, connectClient } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { startCore } from '../support/start-core.ts'
import { discard } from '../support/temporary-folder.ts'

let server: Served
beforeAll(async () => {
  server = await serve()
})
afterAll(stopServers)

const newId = () => `access-${randomUUID()}`
const owner = () => randomUUID() + randomUUID()
const asOwner = (browser: string) => ({ headers: browserOf(browser, server.url).headers })

async function open(id: string, options: Parameters<Served['connect']>[1] = {}): Promise<Client> {
  const client = server.connect(id, options)
  await client.snapshot()
  return client
}

describe('a stranger with the session id', () => {
  // Checked: if any proof is accepted, the stranger gets in.
  it('is forbidden over the socket, joins no room and sees no event', async () => {
    const id = newId()
    const mine = await open(id)
    const strangers = [
      server.connect(id),
      server.connect(id, { token: 'guess' }),
      server.connect(id, { token: '' }),
      server.connect(id, { browser: owner() }),
      server.connect(id, { headers: { cookie: `${OWNER_COOKIE}=` } })
    ]
    for (const stranger of strangers) expect(await stranger.refused()).toBe('forbidden')
    await mine.turn('hello')
    for (const { seen } of strangers) expect(seen.map(({ event }) => event)).toEqual(['connect_error'])
  })

  // Checked: if any proof is accepted, the answer is 200 instead of 403.
  it('is forbidden over HTTP, just as for a session that does not exist', async () => {
    const id = newId()
    const browser = owner()
    await open(id, { browser })
    for (const method of ['GET', 'DELETE', 'PATCH']) {
      const init = { method, ...(method === 'PATCH' && { body: '{"title":"x"}' }) }
      const json = { 'content-type': 'application/json' }
      const headers = { ...asOwner(owner()).headers, ...(method === 'PATCH' ? json : {}) }
      const foreign = await fetch(`${server.url}/api/sessions/${id}`, { ...init, headers })
      const absent = await fetch(`${server.url}/api/sessions/${newId()}`, { ...init, headers })
      expect(foreign.status).toBe(403)
      expect([absent.status, await absent.text()]).toEqual([foreign.status, await foreign.text()])
    }
    expect((await fetch(`${server.url}/api/sessions/${id}`, asOwner(browser))).status).toBe(200)
    const others = await fetch(`${server.url}/api/sessions`, asOwner(owner()))
    expect(await others.json()).toEqual({ sessions: [], next: null, total: 0 })
  })

  // Checked: if any Origin is accepted, nothing is refused.
  it('is refused if it comes from a page of another site, or uses a host name that is not ours', async () => {
    const id = newId()
    const browser = owner()
    await open(id, { browser })
    const foreign = server.connect(id, { browser, headers: { origin: 'https://evil.example' } })
    await foreign.wait('connect_error')
    expect(foreign.socket.connected).toBe(false)
    const headers = { ...asOwner(browser).headers, origin: 'https://evil.example' }
    expect((await fetch(`${server.url}/api/sessions/${id}`, { headers })).status).toBe(403)
    // DNS rebinding: Origin and Host agree, and neither is this machine's name.
    const rebound = { host: `evil.example:${server.port}`, origin: `http://evil.example:${server.port}` }
    expect(await server.connect(newId(), { headers: rebound }).refused()).toBe('unknown_host')
    const local = { host: `localhost:${server.port}`, origin: `http://localhost:${server.port}` }
    await server.connect(newId(), { headers: local }).ready()
  })

  // Checked: if every visit gets a cookie, the attacker gets one.
  it('can not take over an owner: only the page itself, which sends a proof, gets a cookie', async () => {
    const enter = (headers: Record<string, string>) => fetch(`${server.url}/api/owner`, { method: 'POST', headers })
    const proof = { [OWNER_PROOF_HEADER]: browserOf(owner(), server.url).proof }
    for (const path of ['/', '/api/models']) {
      expect((await fetch(server.url + path)).headers.getSetCookie()).toEqual([])
    }
    expect((await enter({})).status).toBe(400)
    expect((await enter({ ...proof, origin: 'http://localhost:1' })).status).toBe(403)
    const cookie = (await enter(proof)).headers.getSetCookie().at(-1)
    expect(cookie).toMatch(new RegExp(`^mcpo_owner_${server.port}=2\\.[^;]{80,}; .*HttpOnly.*SameSite=Strict`))
  })
})

describe('a cookie that another port of this host has set', () => {
  const name = () => ownerCookieName({ host: `127.0.0.1:${server.port}` })
  const enter = async (cookie: string, proof: string) => {
    const headers = { cookie, [OWNER_PROOF_HEADER]: proof }
    const answer = await fetch(`${server.url}/api/owner`, { method: 'POST', headers })
    const [given = ''] = (answer.headers.getSetCookie().at(-1) ?? '').split(';')
    return { status: answer.status, given, reply: (await answer.json()) as { isKnown?: boolean } }
  }
  const list = async (cookie: string, proof: string) => {
    const answer = await fetch(`${server.url}/api/sessions`, { headers: { cookie, [OWNER_PROOF_HEADER]: proof } })
    const { sessions, error } = (await answer.json()) as { sessions?: object[]; error?: { code: string } }
    return error?.code ?? sessions?.length
  }

  // Checked: if the proof is not compared, the attacker gets the victim's session.
  it("does not make the victim the attacker's owner, on the first visit or later", async () => {
    const attacker = browserOf(owner(), server.url)
    const victim = browserOf(owner(), server.url)
    const first = await enter(attacker.cookie, victim.proof)
    expect(first.reply).toEqual({ isKnown: false })
    expect(first.given).not.toBe(attacker.cookie)
    const id = newId()
    const mine = server.connect(id, { headers: { cookie: first.given }, ownerProof: victim.proof })
    await mine.snapshot()
    expect(await list(first.given, victim.proof)).toBe(1)
    expect(await enter(first.given, victim.proof)).toMatchObject({ given: first.given, reply: { isKnown: true } })
    // Planted later: before the victim's cookie, or in its place.
    expect(await list(`${attacker.cookie}; ${first.given}`, victim.proof)).toBe('two_owner_cookies')
    expect((await enter(`${attacker.cookie}; ${first.given}`, victim.proof)).status).toBe(403)
    expect(await list(attacker.cookie, victim.proof)).toBe('owner_unproven')
    const both = { cookie: `${attacker.cookie}; ${first.given}` }
    expect(await server.connect(newId(), { headers: both, ownerProof: victim.proof }).refused()).toBe(
      'two_owner_cookies'
    )
    // The victim's cookie, which browsers send to the attacker's port too, is nothing without the proof.
    for (const headers of [{ cookie: first.given }, { cookie: first.given, [OWNER_PROOF_HEADER]: attacker.proof }]) {
      expect((await fetch(`${server.url}/api/sessions/${id}`, { headers })).status).toBe(403)
      expect(await server.connect(id, { headers }).refused()).toBe('forbidden')
    }
  })

  it('is removed from every path that it could have been set for', async () => {
    const { cookie, proof } = browserOf(owner(), server.url)
    const headers = { cookie: `${cookie}; ${cookie}`, [OWNER_PROOF_HEADER]: proof }
    const removed = (await fetch(`${server.url}/api/sessions/some/files?x=1`, { headers })).headers.getSetCookie()
    for (const path of ['/api', '/api/', '/api/sessions', '/api/sessions/some/files', '/socket.io', '/socket.io/'])
      expect(removed).toContain(`${name()}=; Path=${path}; Max-Age=0`)
    expect(removed.filter((line) => /Path=\/;/.test(line))).toEqual([])
  })

  it('under TLS has a name that browsers accept from this host and path only', async () => {
    const headers = { [OWNER_PROOF_HEADER]: browserOf(owner(), server.url).proof, 'x-forwarded-proto': 'https' }
    const answer = await fetch(`${server.url}/api/owner`, { method: 'POST', headers })
    expect(answer.headers.getSetCookie().at(-1)).toMatch(/^__Host-mcpo_owner_\d+=[^;]+; .*Path=\/; .*Secure/)
  })
})

describe('with an access token', () => {
  // Checked: without the check, the client gets in.
  it('nobody gets in without it, over the socket or HTTP', async () => {
    const secret = 'an access token of some length'
    const guarded = await serve({ AUTH_TOKEN: secret })
    const id = newId()
    expect(await guarded.connect(id).refused()).toBe('unauthorized')
    expect(await guarded.connect(id, { accessToken: 'wrong' }).refused()).toBe('unauthorized')
    const client = guarded.connect(id, { accessToken: secret })
    const { token } = await client.ready()
    expect(await guarded.connect(id, { accessToken: secret }).refused()).toBe('forbidden')
    expect(await guarded.connect(id, { token }).refused()).toBe('unauthorized')
    await guarded.connect(id, { token, headers: { authorization: `Bearer ${secret}` } }).ready()
    const status = async (path: string, headers: Record<string, string> = {}) =>
      (await fetch(guarded.url + path, { headers })).status
    expect(await status('/api/models')).toBe(401)
    expect(await status('/metrics')).toBe(401)
    for (const method of ['GET', 'POST']) {
      const init = { method, ...(method === 'POST' && { body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' }) }
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
      expect((await fetch(`${guarded.url}/mcp`, { ...init, headers })).status).toBe(401)
    }
    expect(await status('/healthz')).toBe(200)
    expect(await status('/api/models', { authorization: `Bearer ${secret}` })).toBe(200)
    const page = browserOf(owner(), guarded.url)
    const login = (text: string) =>
      fetch(`${guarded.url}/api/login`, {
        method: 'POST',
        body: JSON.stringify({ token: text }),
        headers: { 'content-type': 'application/json', ...page.headers }
      })
    expect((await login('wrong')).status).toBe(401)
    const [access] = (await login(secret)).headers.getSetCookie().map((line) => line.split(';')[0])
    const cookie = `${access}; ${page.cookie}`
    expect(await status('/api/sessions', { ...page.headers, cookie })).toBe(200)
    await guarded.connect(newId(), { headers: { cookie }, ownerProof: page.proof }).ready()
    // Every port of this host sees the cookie. Alone, or with another page's proof, it opens nothing.
    expect(await status('/api/sessions', { cookie })).toBe(401)
    expect(await status('/api/sessions', { ...browserOf(owner(), guarded.url).headers, cookie })).toBe(401)
    // A cookie of an earlier version contains the token itself. It is still accepted, and replaced at the next visit.
    const old = { ...page.headers, cookie: `mcpo_access=${encodeURIComponent(secret)}; ${page.cookie}` }
    const visit = await fetch(`${guarded.url}/api/owner`, { method: 'POST', headers: old })
    expect(visit.headers.getSetCookie().map((line) => line.split(';')[0])).toEqual(
      expect.arrayContaining([access, 'mcpo_access='])
    )
    await guarded.stop()
  })

  // Checked: if wrong tokens are not counted, the answer is 401 for ever.
  it('wrong ones are answered 429 after a while, counted for each client behind a trusted proxy', async () => {
    const secret = 'an access token of some length'
    const guarded = await serve({ AUTH_TOKEN: secret, TRUST_PROXY: 'loopback' })
    const mcp = async (token: string, client: string) => {
      const headers = {
        authorization: `Bearer ${token}`,
        'x-forwarded-for': client,
        'content-type': 'application/json'
      }
      return (await fetch(`${guarded.url}/mcp`, { method: 'POST', body: '{}', headers })).status
    }
    for (let at = 0; at < 20; at++) expect(await mcp(`guess ${at}`, '192.0.2.1')).toBe(401)
    expect(await mcp('one more', '192.0.2.1')).toBe(429)
    expect(await mcp('one more', '192.0.2.2')).toBe(401)
    const socket = (accessToken: string, client: string) =>
      guarded.connect(newId(), { accessToken, headers: { 'x-forwarded-for': client } })
    expect(await socket('one more', '192.0.2.1').refused()).toBe('too_fast')
    expect(await socket('one more', '192.0.2.2').refused()).toBe('unauthorized')
    expect([401, 429]).not.toContain(await mcp(secret, '192.0.2.1'))
    await socket(secret, '192.0.2.1').ready()
    await guarded.stop()
  })
})

describe('commands', () => {
  it('of any payload are answered, and none crashes the server', async () => {
    const names = ['message', 'tool:approval', 'model:select', 'tool:revoke', 'nonsense', '__proto__', 'constructor']
    let client = await open(newId())
    let asked = 0
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 3 }), async (name, payload) => {
        // Below the limit of commands a minute.
        if (asked++ % 100 === 99) client = await open(newId())
        if (name === 'message' && asked % 7 !== 0) return
        const ack = await client.ask(name, payload)
        expect(typeof ack.ok).toBe('boolean')
        if (!ack.ok) expect(ack.error).toEqual({ code: expect.stringMatching(/^\w+$/), message: expect.any(String) })
      }),
      { numRuns: 250 }
    )
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
  })

  it('without a payload or an acknowledgement do no harm', async () => {
    const client = await open(newId())
    client.socket.emit('message')
    client.socket.emit('tool:approval', null)
    client.socket.emit('turn:cancel')
    expect(await client.socket.timeout(5000).emitWithAck('message')).toMatchObject({ ok: false })
    expect(await client.ask('message', '   ')).toMatchObject({
      error: { message: expect.stringContaining('some text') }
    })
    expect(await client.ask('message', { text: 'x'.repeat(100_001) })).toMatchObject({ ok: false })
  })

  // Checked: without the limit, 340 commands are answered instead of 300.
  it('are limited per session, over all its tabs', async () => {
    const browser = owner()
    const id = newId()
    const tabs = await Promise.all([open(id, { browser }), open(id, { browser })])
    const acks = await Promise.all(Array.from({ length: 340 }, (_, at) => tabs[at % 2]?.ask('turn:cancel')))
    const codes = acks.map((ack) => (ack?.ok ? 'ok' : ack?.error.code))
    expect(codes.filter((code) => code === 'no_turn')).toHaveLength(300)
    expect(codes.filter((code) => code === 'too_fast')).toHaveLength(40)
    const other = await open(newId(), { browser })
    expect(await other.ask('turn:cancel')).toMatchObject({ error: { code: 'no_turn' } })
  })
})

describe('a spending limit', () => {
  it('ends the turn and asks; raising the limit continues it', async () => {
    const frugal = await serve({ MAX_SESSION_TOKENS: '1000' })
    const client = frugal.connect(newId())
    await client.snapshot()
    expect(await client.turn('hello')).toMatchObject({ reason: 'done' })
    const used = client.all('usage').reduce((sum, { inputTokens }) => sum + Number(inputTokens), 0)
    expect(used).toBeGreaterThan(100)
    let reason = 'done'
    for (let turn = 0; turn < 10 && reason === 'done'; turn++) reason = (await client.turn('hello again')).reason
    expect(reason).toBe('spending_limit')
    expect(client.all('agent:error').at(-1)).toMatchObject({ code: 'spending_limit' })
    expect((await client.turn('still there?')).reason).toBe('spending_limit')
    const from = client.seen.length
    expect(await client.ask('limit:raise')).toEqual({ ok: true })
    // The turn that the limit ended goes on by itself.
    expect(await client.wait('turn:end', undefined, { from })).toMatchObject({ reason: 'done' })
    await frugal.stop()
  })
})

describe('a deleted session', () => {
  it('disconnects its tabs and leaves nothing: no container, no file, no event, no owner', async () => {
    const browser = owner()
    const id = newId()
    const [a, b] = await Promise.all([open(id, { browser }), open(id, { browser })])
    await a.turn('write secret.txt: mine')
    const [card] = await a.cards('run sleep 300')
    await a.ask('tool:approval', { callId: card?.callId, approved: true })
    await a.wait('tool:started', ({ callId }) => callId === card?.callId)
    const { sessions } = (await (await fetch(`${server.url}/api/sessions`, asOwner(browser))).json()) as {
      sessions: { sessionId: string; title: string }[]
    }
    expect(sessions).toMatchObject([{ sessionId: id, title: 'write secret.txt: mine', sandbox: 'running' }])

    const gone = await fetch(`${server.url}/api/sessions/${id}`, { method: 'DELETE', ...asOwner(browser) })
    expect(gone.status).toBe(204)
    await Promise.all([a.wait('disconnect'), b.wait('disconnect')])
    await eventually('the log is gone', async () => (await server.events(id)).length === 0)
    const list = await fetch(`${server.url}/api/sessions`, asOwner(browser))
    expect(await list.json()).toEqual({ sessions: [], next: null, total: 0 })
    // The id is free: the next person who opens it finds nothing of the old session.
    const next = await open(id)
    expect((await next.snapshot()).transcript).toMatchObject({ turns: 0, calls: {} })
    expect(await next.sh('ls -A')).not.toContain('secret')
  })
})

describe('a session that its owner may still bring back', () => {
  // Checked: if deleted sessions are not refused, the token opens it again.
  it('answers nobody until then, whatever token they have, and only its owner can bring it back', async () => {
    const browser = owner()
    const made = await fetch(`${server.url}/api/sessions`, { method: 'POST', ...asOwner(browser) })
    const { sessionId: id, token } = (await made.json()) as { sessionId: string; token: string }
    const tab = await open(id, { browser })
    const client = await open(id, { token })
    await tab.turn('a secret')
    const call = async (method: string, path: string, headers: Record<string, string>) =>
      (await fetch(`${server.url}/api/sessions/${id}${path}`, { method, headers })).status
    expect(await call('DELETE', '?undo=true', asOwner(browser).headers)).toBe(204)
    await Promise.all([tab.wait('disconnect'), client.wait('disconnect')])
    for (const proof of [{ token }, { browser }])
      expect(await server.connect(id, proof).refused()).toBe('unknown_session')
    const holder = { 'x-session-token': token }
    for (const headers of [holder, asOwner(browser).headers]) {
      for (const path of ['', '/files', '/archive', '/export?format=json', '/changes'])
        expect([path, await call('GET', path, headers)]).toEqual([path, 404])
      expect(await call('DELETE', '?undo=true', headers)).toBe(404)
    }
    expect(await call('DELETE', '', holder)).toBe(403)
    for (const headers of [holder, asOwner(owner()).headers]) expect(await call('POST', '/restore', headers)).toBe(403)
    expect(await call('POST', '/restore', asOwner(browser).headers)).toBe(200)
    expect(await call('GET', '', holder)).toBe(200)
    expect(await call('DELETE', '?undo=true', holder)).toBe(204)
    expect(await call('DELETE', '', asOwner(browser).headers)).toBe(204)
    expect(await call('POST', '/restore', asOwner(browser).headers)).toBe(403)
  })
})

describe('a long conversation', () => {
  it('is compressed on the wire: on a slow line, the connection would otherwise time out again and again', async () => {
    const id = newId()
    const first = await open(id)
    const { token } = await first.ready()
    await first.turn('words and words '.repeat(6000))
    let received = 0
    const line = createServer((near) => {
      const far = connect(server.port, '127.0.0.1')
      far.on('data', ({ length }) => {
        received += length
      })
      near.pipe(far).pipe(near)
      near.on('error', () => far.destroy())
      far.on('error', () => near.destroy())
    })
    await new Promise<void>((resolve) => line.listen(0, '127.0.0.1', resolve))
    const address = line.address() as AddressInfo
    const again = connectClient(`http://127.0.0.1:${address.port}`, id, { token })
    const size = JSON.stringify(await again.snapshot()).length
    expect(size).toBeGreaterThan(96_000)
    expect(received).toBeLessThan(size / 5)
    again.close()
    line.close()
  })
})

describe('retention', () => {
  it('removes a conversation and its ownership, also of a session in which nobody ever wrote, and tells its tabs', async () => {
    const core = await startCore({}, { sessions: { retentionMs: 300, janitorIntervalMs: 60_000, clockTrustMs: 0 } })
    const gone: string[] = []
    core.feed.subscribe({ gone: (sessionId) => gone.push(sessionId) })
    const ids = [newId(), newId()]
    for (const id of ids) {
      await core.access.open(id, {})
      await core.sessions.hold(id, async () => {})
      await core.store.events.append(id, [{ type: 'model:selected', data: { model: 'demo/demo' }, key: 'model:first' }])
    }
    await eventually('both are gone', async () => {
      await core.sessions.janitor.round()
      return gone.length === 2
    })
    for (const id of ids) {
      expect(await core.access.meta(id)).toBeNull()
      expect(await core.store.events.lastSeq(id)).toBe(0)
      expect(await core.store.sessions.get(id)).toBeNull()
    }
    await core.stop()
    discard(core.dataDir)
  })
})
