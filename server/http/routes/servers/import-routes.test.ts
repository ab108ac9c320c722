import { mkdirSync, writeFileSync } from 'node:fs'
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

async function open(servers: Record<string, unknown>, tokens = {}) {
  const { place, write } = clients(servers)
  const routes = await openServerRoutes({ taken: child('steady') }, '{}', tokens, place)
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
