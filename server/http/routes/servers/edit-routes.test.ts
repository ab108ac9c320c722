import { readFileSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { EntryDraft } from '../../../../contract/servers/entry-edits.ts'
import type { PlanReply, ServerDetail, ServersReply } from '../../../../contract/servers/servers.ts'
import { textOf } from '../../../../tests/support/text-of.ts'
import { child } from '../../../connections/connections.fixture.ts'
import { openServerRoutes } from './server-routes.fixture.ts'

const SECRET = 'sk-hidden-value-1234567890'
type Opened = Awaited<ReturnType<typeof openServerRoutes>>

/** Opens the entry, changes it as a person would, and confirms what is shown. */
async function edit(
  ask: Opened['ask'],
  name: string,
  change: (draft: EntryDraft['entry']) => object,
  more: object = {}
) {
  const { json: draft, text } = await ask<EntryDraft>('GET', `/${name}/entry`)
  const body = { version: draft.version, name, entry: { ...draft.entry, ...change(draft.entry) }, ...more }
  const plan = await ask<PlanReply>('PUT', `/${name}`, body)
  const save = () => ask('PUT', `/${name}`, { ...body, confirm: plan.json.confirm })
  return { draft, plan, save, seen: text + plan.text }
}

it('changes only what differs: comments, hidden values and unknown keys stay; the child is replaced and gets its secret', async () => {
  const { ask, file, gateway } = await openServerRoutes({}, 'TOKEN=granted-secret-1\n')
  const { command, args } = child('who')
  const text = `{
  // of the team
  "mcpServers": {
    "who": {
      "command": ${JSON.stringify(command)}, // ours
      "args": ${JSON.stringify(args)},
      "env": { "API_KEY": "${SECRET}", /* shown */ "MODE": "x", "TOKEN": "\${secret:TOKEN}" },
      "autoApprove": ["theirs"]
    }
  }
}
`
  const { connections } = await gateway.core()
  writeFileSync(file, text)
  await gateway.reload()
  expect((await ask<ServerDetail>('GET', '/who')).json.isWaiting).toBe(true)
  const change = await edit(ask, 'who', () => ({
    description: 'Tells who calls',
    env: { API_KEY: null, MODE: 'y', TOKEN: `\${secret:TOKEN}` },
    timeoutMs: { call: 5000 }
  }))
  expect(change.draft.entry.env).toEqual({ API_KEY: null, MODE: 'x', TOKEN: `\${secret:TOKEN}` })
  expect(change.plan).toMatchObject({
    status: 200,
    json: {
      servers: [{ name: 'who', description: 'Tells who calls', env: [{ value: null, looksSecret: true }, {}, {}] }]
    }
  })
  expect(readFileSync(file, 'utf8')).toBe(text)
  expect(await change.save()).toMatchObject({ status: 200, json: { saved: 'who' } })
  const saved = readFileSync(file, 'utf8')
  for (const kept of ['// of the team', '// ours', '/* shown */', SECRET, '"MODE": "y"', '"autoApprove"'])
    expect(saved).toContain(kept)
  expect(change.seen).not.toContain(SECRET)
  const detail = (await ask<ServerDetail>('GET', '/who')).json
  expect(detail).toMatchObject({ isWaiting: false, description: 'Tells who calls' })
  const caller = { owner: 'local', door: 'http' } as const
  const call = { caller, tool: 'who', args: {}, mustNotRepeat: true, signal: new AbortController().signal }
  expect(textOf((await connections.call('who', call)).result)).toContain('granted-secret-1')
})

it('loses nobody’s change: an entry that is no longer what was shown is not saved, before and after the plan', async () => {
  const { ask, saved, file } = await openServerRoutes({ steady: child('steady'), other: child('steady') })
  const mine = await edit(ask, 'steady', () => ({ description: 'mine' }))
  const theirs = await edit(ask, 'steady', () => ({ description: 'theirs' }))
  // A change of another entry is no conflict.
  expect(await ask('POST', '/other/disable', {})).toMatchObject({ status: 204 })
  expect(await theirs.save()).toMatchObject({ status: 200 })
  const conflict = { status: 409, json: { error: { code: 'edit_conflict' } } }
  expect(await mine.save()).toMatchObject(conflict)
  const { version } = mine.draft
  expect(await ask('PUT', '/steady', { version, name: 'steady', entry: {} })).toMatchObject(conflict)
  expect(saved().mcpServers.steady.description).toBe('theirs')
  const { draft, plan } = await edit(ask, 'steady', () => ({ description: 'next' }))
  const other = { version: draft.version, name: 'steady', entry: { command: 'rm' }, confirm: plan.json.confirm }
  expect(await ask('PUT', '/steady', other)).toMatchObject({
    status: 409,
    json: { error: { code: 'confirmation_stale' } }
  })
  const rule = {
    tool: 'echo',
    before: { rule: 'deny', isReadOnly: false },
    after: { rule: 'allow', isReadOnly: false }
  }
  expect(await ask('PUT', '/steady/rules', rule)).toMatchObject(conflict)
  const gone = await edit(ask, 'steady', () => ({ description: 'too late' }))
  writeFileSync(file, '{"mcpServers": {}}')
  expect(await gone.save()).toMatchObject({ status: 404 })
})

it('renames an entry and all who name it, makes it remote, moves its secrets, and refuses what can not be', async () => {
  const plain = child('steady', [], { env: { API_KEY: SECRET } })
  const { ask, saved, secretsFile } = await openServerRoutes({
    old: plain,
    spare: child('steady', [], { alternatives: ['x', 'old'] })
  })
  const renamed = await edit(ask, 'old', () => ({}), { name: 'new', moveSecrets: true })
  expect(await renamed.save()).toMatchObject({ status: 200, json: { saved: 'new' } })
  expect(Object.keys(saved().mcpServers)).toEqual(['new', 'spare'])
  expect(saved().mcpServers.new.env).toEqual({ API_KEY: `\${secret:NEW_API_KEY}` })
  expect(readFileSync(secretsFile, 'utf8')).toContain(SECRET)
  expect(saved().mcpServers.spare.alternatives).toEqual(['x', 'new'])
  const taken = await edit(ask, 'new', () => ({}), { name: 'spare' })
  expect(taken.plan).toMatchObject({ status: 409, json: { error: { code: 'server_exists' } } })
  const moved = await edit(ask, 'spare', () => ({ env: { OTHER: null } }))
  expect(moved.plan).toMatchObject({ status: 400, json: { error: { message: expect.stringContaining('OTHER') } } })
  const both = await edit(ask, 'spare', () => ({ url: 'https://example.org/mcp' }))
  expect(both.plan).toMatchObject({ status: 400, json: { error: { message: expect.stringContaining('"command"') } } })
  const { version } = both.draft
  const body = { version, name: 'spare', entry: { url: 'https://example.org/mcp' } }
  const { confirm } = (await ask<PlanReply>('PUT', '/spare', body)).json
  expect(await ask('PUT', '/spare', { ...body, confirm })).toMatchObject({ status: 200 })
  const { servers } = (await ask<ServersReply>('GET', '')).json
  expect(servers).toMatchObject([{ name: 'new' }, { name: 'spare', kind: 'remote' }])
})

// Checked: if hidden values are kept in any case, another command gets the key.
it('keeps a hidden value only for the command and the place that it was entered for', async () => {
  const env = { API_KEY: SECRET, DATABASE_URL: 'postgres://me:hidden-password@db/x', MODE: 'x' }
  const { ask, saved } = await openServerRoutes({
    local: child('steady', [], { env }),
    remote: { url: 'https://example.org/mcp', headers: { Authorization: `Bearer ${SECRET}` } }
  })
  const hidden = { API_KEY: null, DATABASE_URL: null, MODE: 'y' }
  const elsewhere: [string, object][] = [
    ['local', { command: 'sh', env: hidden }],
    ['local', { args: ['-c', 'true'], env: hidden }],
    ['local', { cwd: '/tmp', env: hidden }],
    ['local', { sandbox: true, env: hidden }],
    ['local', { env: { ...hidden, NODE_OPTIONS: '--require=/tmp/x.js' } }],
    ['local', { env: { ...hidden, API_HOST: 'evil.example' } }],
    ['local', { env: { ...hidden, ACME_SUBDOMAIN: 'evil' } }],
    ['local', { env: { ...hidden, OPENAI_API_BASE: 'evil' } }],
    ['local', { env: { ...hidden, MODE: 'https://evil.example' } }],
    ['local', { env: { ...hidden, MODE: 'evil.example:443' } }],
    ['local', { env: { ...hidden, MODE: '/tmp/evil.json' } }],
    ['local', { env: { API_KEY: null, DATABASE_URL: 'postgres://evil.example/x' } }],
    ['remote', { url: 'https://evil.example/mcp' }]
  ]
  const before = saved()
  for (const [name, change] of elsewhere) {
    const { plan } = await edit(ask, name, () => change)
    expect([change, plan.json]).toMatchObject([change, { error: { message: expect.stringContaining('again') } }])
  }
  expect(saved()).toEqual(before)
  const same = await edit(ask, 'local', () => ({ description: 'new', env: hidden }))
  expect(await same.save()).toMatchObject({ status: 200 })
  expect(saved().mcpServers.local.env).toEqual({ ...env, MODE: 'y' })
  const given = { ...hidden, API_KEY: 'sk-another-1234567890', DATABASE_URL: 'postgres://db/x' }
  const entered = await edit(ask, 'local', () => ({ args: [], env: given }))
  expect(await entered.save()).toMatchObject({ status: 200 })
})

it('sets the rule of one tool, which applies at once, and removes it without a trace', async () => {
  const { ask, saved, chat } = await openServerRoutes({ steady: child('steady') })
  const before = saved()
  const none = { rule: null, isReadOnly: false }
  const strict = { rule: 'deny', isReadOnly: true }
  expect(await ask('PUT', '/steady/rules', { tool: 'write', before: none, after: strict })).toMatchObject({
    status: 204
  })
  expect(saved().mcpServers.steady).toMatchObject({ approval: { write: 'deny' }, readOnly: ['write'] })
  expect(chat.policy('steady', 'write')).toBe('deny')
  expect(chat.policy('steady', 'echo')).toBe('ask')
  expect(await ask('PUT', '/steady/rules', { tool: 'wri*', before: none, after: strict })).toMatchObject({
    status: 400
  })
  const back = await ask('PUT', '/steady/rules', { tool: 'write', before: strict, after: none })
  expect(back).toMatchObject({ status: 204 })
  expect(saved()).toEqual(before)
})
