import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { Sealer } from '../../lib/sealing.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import { type Login, Logins } from './logins.ts'
import { openSharedLogins, type SharedLogins } from './shared-logins.ts'

const KEY = 'a key with enough characters'
let keyValues: KeyValueStore
let dir: string
let opened: SharedLogins[]

beforeEach(() => {
  keyValues = fakeKeyValueStore()
  dir = temporaryFolder()
  opened = []
})
afterEach(() => {
  for (const each of opened) each.close()
  discard(dir)
})

async function open(secrets: [string, ...string[]] = [KEY], staleMs = 30_000): Promise<SharedLogins> {
  const sealer = new Sealer(secrets, 'logins')
  const shared = await openSharedLogins({ keyValues, sealer, logger: silentLogger, dir, staleMs })
  opened.push(shared)
  return shared
}

function login(token: string, url = 'https://far.example/mcp'): Login {
  const tokens = { access_token: token, token_type: 'Bearer', refresh_token: `again-${token}` }
  return { url, issuer: 'https://issuer.example', client: { client_id: 'me' }, tokens }
}

const tokenOf = async (logins: Logins) => (await logins.read('far', ''))?.tokens.access_token

it('is used by the other instance, and can not be read in the store', async () => {
  const [a, b] = [await open(), await open()]
  await new Logins(a).write('far', '', login('secret-token'))
  expect(new Logins(a).has('far', '')).toBe(true)
  await b.refresh()
  expect(new Logins(b).has('far', '')).toBe(true)
  expect(await tokenOf(new Logins(b))).toBe('secret-token')
  expect(JSON.stringify(await keyValues.list('logins'))).not.toMatch(/secret-token|far|issuer/)
  expect(await new Logins(b).remove('far', '')).toBe(true)
  await a.refresh()
  expect(new Logins(a).has('far', '')).toBe(false)
  expect(await new Logins(a).remove('far', '')).toBe(false)
})

// Checked: if the name is not part of the seal, the row opens under another name.
it('is not opened with another key, for another server, or if a byte has changed', async () => {
  const a = await open()
  await new Logins(a).write('far', '', login('x'))
  const other = await open(['another key with enough characters'])
  expect(other.unreadable).toBe(1)
  expect(new Logins(other).has('far', '')).toBe(false)
  expect(await tokenOf(new Logins(other))).toBeUndefined()
  const [row] = await keyValues.list('logins')
  const sealed = String(row?.value)
  await keyValues.set('logins', 'f'.repeat(32), sealed)
  expect(await a.read('f'.repeat(32))).toBeUndefined()
  const at = sealed.length - 6
  await keyValues.set(
    'logins',
    row?.key ?? '',
    `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`
  )
  expect(await tokenOf(new Logins(a))).toBeUndefined()
})

it('gets the new key when that is replaced', async () => {
  await new Logins(await open()).write('far', '', login('x'))
  const fresh = 'the next key with enough characters'
  expect(await tokenOf(new Logins(await open([fresh, KEY])))).toBe('x')
  const later = await open([fresh])
  expect(later.unreadable).toBe(0)
  expect(await tokenOf(new Logins(later))).toBe('x')
})

it('is moved from the folder once, and does not come back after a logout', async () => {
  await new Logins(dir).write('far', '', login('from the folder'))
  mkdirSync(join(dir, 'sub'))
  writeFileSync(join(dir, 'notes.json'), '{}')
  const a = await open()
  expect(await tokenOf(new Logins(a))).toBe('from the folder')
  expect(readdirSync(dir).toSorted()).toEqual(['notes.json', 'sub'])
  await new Logins(a).remove('far', '')
  expect(await tokenOf(new Logins(await open()))).toBeUndefined()
  await new Logins(dir).write('far', '', login('older'))
  await new Logins(a).write('far', '', login('newer'))
  expect(await tokenOf(new Logins(await open()))).toBe('newer')
  expect(readdirSync(dir)).toHaveLength(2)
})

it('stays in the folder while an instance looks for it only there', async () => {
  let isAgreed = false
  const sealer = new Sealer([KEY], 'logins')
  const mayWrite = async () => isAgreed
  const a = await openSharedLogins({ keyValues, sealer, logger: silentLogger, dir, mayWrite })
  opened.push(a)
  const older = new Logins(dir)
  await new Logins(a).write('far', '', login('first'))
  expect(await tokenOf(older)).toBe('first')
  await older.write('far', '', login('second'))
  expect([new Logins(a).has('far', ''), await tokenOf(new Logins(a))]).toEqual([true, 'second'])
  expect(await keyValues.list('logins')).toEqual([])
  isAgreed = true
  await a.refresh()
  expect([older.has('far', ''), await tokenOf(new Logins(a))]).toEqual([false, 'second'])
})

// An issuer may accept a refresh token only once, and revoke everything if it sees one twice.
it('is refreshed by one instance only, and the others use its token', async () => {
  let refreshes = 0
  const issuer = createServer((request, response) => {
    const base = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`
    response.setHeader('content-type', 'application/json')
    if (request.url?.includes('oauth-protected-resource')) return void response.writeHead(404).end('{}')
    if (request.url?.startsWith('/token')) {
      const body = { access_token: `fresh-${++refreshes}`, token_type: 'Bearer', refresh_token: `again-${refreshes}` }
      return void response.end(JSON.stringify(body))
    }
    const endpoints = { authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token` }
    response.end(JSON.stringify({ issuer: base, ...endpoints, response_types_supported: ['code'] }))
  })
  await new Promise<void>((ready) => issuer.listen(0, '127.0.0.1', ready))
  const base = `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`
  try {
    const instances = [new Logins(await open()), new Logins(await open()), new Logins(await open())]
    const old = { ...login('old', `${base}/mcp`), issuer: base, expiresAt: 1 }
    await instances[0]?.write('far', '', old)
    const tokens = await Promise.all(instances.map((each) => each.provider('far', old.url, '', () => {}).token()))
    expect(tokens).toEqual(['fresh-1', 'fresh-1', 'fresh-1'])
    expect(refreshes).toBe(1)
  } finally {
    issuer.closeAllConnections()
    issuer.close()
  }
})

it('takes over the lock of an instance that died, and no other', async () => {
  const [a, b] = [await open([KEY], 500), await open([KEY], 500)]
  const order: string[] = []
  const dead = Promise.withResolvers<void>()
  const first = a.locked('n', () => dead.promise)
  await b.locked('n', async () => void order.push('took over'))
  dead.resolve()
  await first
  const slow = a.locked('m', async () => void order.push('first'))
  await b.locked('m', async () => void order.push('second'))
  await slow
  expect(order).toEqual(['took over', 'first', 'second'])
  expect(await keyValues.list('login-locks')).toEqual([])
})
