import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { ImportReply } from '../../../../contract/servers/import.ts'
import { temporaryFolder } from '../../../../tests/support/temporary-folder.ts'
import { child } from '../../../connections/connections.fixture.ts'
import { openServerRoutes } from './server-routes.fixture.ts'

const SECRET = 'sk-hidden-value-1234567890'

/** A home with Cursor's servers in it. */
function clients(mcpServers: Record<string, unknown>) {
  const home = temporaryFolder()
  mkdirSync(join(home, '.cursor'), { recursive: true })
  const write = (servers: Record<string, unknown>) =>
    writeFileSync(join(home, '.cursor/mcp.json'), JSON.stringify({ mcpServers: servers }))
  write(mcpServers)
  return { place: { home, folder: temporaryFolder(), environment: {} }, write }
}

async function open(servers: Record<string, unknown>, tokens = {}, own = {}) {
  const { place, write } = clients(servers)
  const routes = await openServerRoutes({ taken: child('steady'), ...own }, '{}', tokens, place)
  const send = async (method: string, body?: unknown, headers: Record<string, string> = {}, query = '') => {
    const init = body === undefined ? {} : { body: JSON.stringify(body) }
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const reply = await fetch(`${routes.url}/api/servers-import${query}`, {
      method,
      ...init,
      headers: { ...type, ...headers }
    })
    const text = await reply.text()
    return { status: reply.status, text, json: JSON.parse(text) as ImportReply }
  }
  return { ...routes, send, write }
}

it('shows what other clients have, and imports exactly the chosen ones', async () => {
  const steady = child('steady', [], { env: { API_KEY: SECRET } })
  const theirs = { steady, other: child('who'), taken: child('who'), bad: { command: 7 } }
  const { send, saved, write } = await open(theirs)
  const { json, text } = await send('GET')
  expect(json.servers).toMatchObject([
    { name: 'steady', client: 'Cursor', env: [{ name: 'API_KEY', value: null, looksSecret: true }] },
    { name: 'other', client: 'Cursor' }
  ])
  expect(json.problems.join('\n')).toMatch(/"bad"[\s\S]*"taken" is left out/)
  expect(text).not.toContain(SECRET)
  const [shown] = json.servers
  const chosen = [{ name: 'steady', confirm: shown?.confirm }]
  const stale = { status: 409, json: { error: { code: 'confirmation_stale' } } }
  expect(await send('POST', { chosen: [{ name: 'steady', confirm: 'x' }] })).toMatchObject(stale)
  write({ ...theirs, steady: { command: 'rm', args: ['-rf', '/'] } })
  expect(await send('POST', { chosen })).toMatchObject(stale)
  expect(Object.keys(saved().mcpServers)).toEqual(['taken'])
  write(theirs)
  const moved = (await send('GET', undefined, {}, '?moveSecrets=true')).json
  expect(moved.servers[0]?.env).toMatchObject([{ placeholder: `\${secret:STEADY_API_KEY}` }])
  const wish = { chosen: [{ name: 'steady', confirm: moved.servers[0]?.confirm }], moveSecrets: true }
  expect(await send('POST', wish)).toMatchObject({ status: 201, json: { added: ['steady'] } })
  expect(saved().mcpServers).toMatchObject({ steady: { env: { API_KEY: `\${secret:STEADY_API_KEY}` } } })
  expect(Object.keys(saved().mcpServers)).toEqual(['taken', 'steady'])
  expect((await send('GET')).json.servers.map(({ name }) => name)).not.toContain('steady')
})

// Checked: if each server's secrets get their names alone, both servers get the last value, and so does the entry that is there.
it('gives no secret the name of another one that it moves, or that an entry uses', async () => {
  const [env, old] = [(key: string) => ({ env: { API_KEY: key } }), `\${secret:MY_APP_API_KEY_2}`]
  const theirs = { 'my-app': child('steady', [], env(SECRET)), my_app: child('who', [], env(`${SECRET}-other`)) }
  const { send, saved, secretsFile } = await open(theirs, {}, { old: child('steady', [], { env: { KEY: old } }) })
  const { servers } = (await send('GET', undefined, {}, '?moveSecrets=true')).json
  const chosen = servers.map(({ name, confirm }) => ({ name, confirm }))
  expect(await send('POST', { chosen, moveSecrets: true })).toMatchObject({ status: 201 })
  const secrets = JSON.parse(readFileSync(secretsFile, 'utf8'))
  const keyOf = (server: string) => String(saved().mcpServers[server]?.env?.API_KEY).replace(/^\$\{secret:|\}$/g, '')
  expect([secrets[keyOf('my-app')], secrets[keyOf('my_app')]]).toEqual([SECRET, `${SECRET}-other`])
  expect(secrets.MY_APP_API_KEY_2).toBeUndefined()
})

it('is for administrators on this machine only', async () => {
  const ADMIN_TOKEN = 'the token of the one who adds servers'
  const admin = { 'x-admin-token': ADMIN_TOKEN }
  const { send } = await open({ steady: child('steady') }, { ADMIN_TOKEN })
  const body = { chosen: [{ name: 'steady', confirm: 'x' }] }
  for (const [method, sent] of [
    ['GET', undefined],
    ['POST', body]
  ] as const) {
    expect(await send(method, sent)).toMatchObject({ status: 403, json: { error: { code: 'admin_required' } } })
    for (const header of ['x-forwarded-for', 'forwarded', 'via'])
      expect(await send(method, sent, { ...admin, [header]: '203.0.113.7' })).toMatchObject({
        status: 403,
        json: { error: { code: 'import_local_only' } }
      })
  }
  expect(await send('GET', undefined, admin)).toMatchObject({ status: 200, json: { servers: [{ name: 'steady' }] } })
  const elsewhere = await openServerRoutes({})
  const refused = await fetch(`${elsewhere.url}/api/servers-import`)
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('import_local_only')])
})
