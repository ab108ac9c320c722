import { rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../tests/support/eventually.ts'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { textOf } from '../../../tests/support/text-of.ts'
import { isRecord } from '../../lib/is-record.ts'
import { openTestConnections } from '../connections.fixture.ts'

const closing: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A minimal remote server of the older revisions: its tool `wait` answers when released, `fail` answers with an HTTP status. */
async function openRemote(headers: Record<string, string> = {}, more: Record<string, unknown> = {}) {
  const credentials = join(temporaryFolder(), 'credentials.json')
  const keep = (token: string) => writeFileSync(credentials, JSON.stringify({ TOKEN: token }), { mode: 0o600 })
  keep('token-a')
  const remote = {
    token: 'token-a',
    greetings: 0,
    refused: 0,
    lost: 0,
    redirect: '',
    session: '',
    ended: [] as unknown[],
    waiting: [] as (() => void)[]
  }
  const answer = async (name: unknown, args: Record<string, unknown>, response: ServerResponse) => {
    if (name === 'fail') return void response.writeHead(Number(args.status)).end('no')
    if (name === 'wait') await new Promise<void>((go) => remote.waiting.push(go))
    return { content: [{ type: 'text', text: 'done' }] }
  }
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    if (remote.redirect) return void response.writeHead(307, { location: remote.redirect }).end()
    if (request.method === 'DELETE') {
      remote.ended.push(request.headers['mcp-session-id'])
      // A server that never answers.
      return remote.session === 'stuck' ? undefined : void response.writeHead(200).end()
    }
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const { id, method, params = {} } = Object(await json(request))
    if (headers.Authorization !== undefined && request.headers.authorization !== `Bearer ${remote.token}`) {
      remote.refused++
      return void response.writeHead(401).end()
    }
    if (method === 'initialize') remote.lost = 0
    if (remote.lost > 0) return void response.writeHead(remote.lost).end()
    if (id === undefined) return void response.writeHead(202).end()
    const session: Record<string, string> = remote.session ? { 'mcp-session-id': remote.session } : {}
    const say = (message: Record<string, unknown>) =>
      response
        .writeHead(200, { 'content-type': 'application/json', ...session })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...message }))
    if (method === 'initialize') {
      remote.greetings++
      const { protocolVersion } = params
      return void say({
        result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'r', version: '1' } }
      })
    }
    if (method === 'tools/list') {
      const tools = ['wait', 'fail', 'echo'].map((name) => ({ name, inputSchema: { type: 'object' } }))
      return void say({ result: { tools } })
    }
    if (method !== 'tools/call') return void say({ error: { code: -32601, message: 'Method not found' } })
    const result = await answer(params.name, isRecord(params.arguments) ? params.arguments : {}, response)
    if (result) say({ result })
  }
  const listener = createServer((request, response) => void serve(request, response))
  await new Promise<void>((ready) => listener.listen(0, '127.0.0.1', ready))
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`
  const test = await openTestConnections({ far: { url, headers, ...more } }, { credentials })
  closing.push(
    () => test.close(),
    () => listener.closeAllConnections(),
    () => void listener.close(),
    () => rmSync(join(credentials, '..'), { recursive: true })
  )
  return { ...test, remote, keep }
}

describe('a remote server', () => {
  it.each([500, 429, 400, 404])('that answers one call with HTTP %i continues with the others', async (status) => {
    const { call, remote } = await openRemote()
    const long = call('far', 'wait', {}, { mustNotRepeat: true })
    await eventually('the long call', () => remote.waiting.length === 1)
    const failed = call('far', 'fail', { status }, { mustNotRepeat: true })
    await expect(failed).rejects.toMatchObject({ code: 'child_lost', message: `"far" answered with HTTP ${status}.` })
    expect(textOf((await call('far', 'echo')).result)).toBe('done')
    remote.waiting[0]?.()
    expect(textOf((await long).result)).toBe('done')
    expect(remote.greetings).toBe({ 500: 1, 429: 1, 400: 2, 404: 4 }[status])
  })

  it('is disconnected at once on shutdown, even from a connection that only finishes its calls', async () => {
    const { call, remote, connections } = await openRemote()
    const long = call('far', 'wait', {}, { mustNotRepeat: true })
    await eventually('the long call', () => remote.waiting.length === 1)
    await expect(call('far', 'fail', { status: 400 }, { mustNotRepeat: true })).rejects.toThrow('HTTP 400')
    await connections.close()
    await expect(long).rejects.toMatchObject({ code: 'child_lost' })
  })

  it.each(['one', 'stuck'])('is told that its session ends, also if it does not answer that (%s)', async (session) => {
    const { call, remote, connections } = await openRemote()
    remote.session = session
    await call('far', 'echo')
    await connections.close()
    expect(remote.ended).toEqual([session])
  })

  it('gets a new secret with the next call, however many have failed', async () => {
    const { call, remote, keep } = await openRemote({ Authorization: `Bearer \${secret:TOKEN}` })
    expect(textOf((await call('far', 'echo')).result)).toBe('done')
    remote.token = 'token-b'
    for (let times = 0; times < 5; times++) {
      await expect(call('far', 'echo')).rejects.toMatchObject({ code: 'child_forbidden' })
    }
    keep('token-b')
    expect(textOf((await call('far', 'echo', {}, { mustNotRepeat: true })).result)).toBe('done')
    // The secret changes on both sides between two calls: nobody notices, and the session continues.
    remote.token = 'token-c'
    keep('token-c')
    expect(textOf((await call('far', 'echo', {}, { mustNotRepeat: true })).result)).toBe('done')
    expect(remote.greetings).toBe(2)
  })

  it.each(['http', 'sse'])('gets secrets in headers that go to no other host (%s)', async (type) => {
    const { call, remote } = await openRemote({ 'X-Key': `\${secret:TOKEN}` }, { type })
    const seen: unknown[] = []
    const other = createServer((request, response) => {
      seen.push(request.headers['x-key'])
      response.writeHead(404).end()
    })
    await new Promise<void>((ready) => other.listen(0, '127.0.0.1', ready))
    closing.push(() => void other.close())
    remote.redirect = `http://127.0.0.1:${(other.address() as AddressInfo).port}/steal`
    await expect(call('far', 'echo')).rejects.toThrow(
      type === 'http' ? '"far" answered with HTTP 307. Redirects are not followed' : '"far"'
    )
    expect(seen).toEqual([])
  })

  it.each(['http', 'sse'])('that is down says that it can not be reached (%s)', async (type) => {
    const closed = createServer()
    await new Promise<void>((ready) => closed.listen(0, '127.0.0.1', ready))
    const { port } = closed.address() as AddressInfo
    await new Promise((done) => closed.close(done))
    const { call, close } = await openTestConnections({ far: { type, url: `http://127.0.0.1:${port}/mcp` } })
    closing.push(close)
    await expect(call('far', 'echo')).rejects.toMatchObject({
      code: 'child_unreachable',
      message: expect.stringMatching(/^"far" can't be reached \(.*ECONNREFUSED.*\)\.$/),
      details: { sent: false }
    })
  })

  it('that forbids one call is initialized again only if that may help', async () => {
    const { call, remote } = await openRemote()
    const forbidden = (status: number) =>
      expect(call('far', 'fail', { status })).rejects.toMatchObject({ code: 'child_forbidden' })
    await forbidden(403)
    await forbidden(403)
    expect(remote.greetings).toBe(1)
    await forbidden(401)
    expect(remote.greetings).toBe(2)
  })

  it('that has lost a session is initialized again, whatever status it reports', async () => {
    const { call, remote } = await openRemote()
    expect(textOf((await call('far', 'echo')).result)).toBe('done')
    remote.lost = 410
    await expect(call('far', 'echo', {}, { mustNotRepeat: true })).rejects.toMatchObject({ code: 'child_lost' })
    expect(textOf((await call('far', 'echo')).result)).toBe('done')
    expect(remote.greetings).toBe(2)
  })
})
