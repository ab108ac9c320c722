import { expect, it, vi } from 'vitest'
import type { OffersReply, PromptReply, ResourceReply } from '../../../../contract/servers/offers.ts'
import type { TriedTool } from '../../../../contract/servers/servers.ts'
import { child } from '../../../connections/connections.fixture.ts'
import { openServerRoutes } from './server-routes.fixture.ts'

it('lists resources and prompts, reads them bounded, and records that; a rule that denies it applies', async () => {
  const { ask, gateway } = await openServerRoutes({
    full: child('conformance-server'),
    closed: child('conformance-server', [], { approval: { 'resources/*': 'deny', 'prompts/*': 'deny' } }),
    plain: child('steady')
  })
  const { audit, connections } = await gateway.core()
  const begin = vi.spyOn(audit, 'begin')
  const offers = (await ask<OffersReply>('GET', '/full/offers')).json
  expect(offers.problems).toEqual([])
  expect(offers.resources).toContainEqual(
    expect.objectContaining({ uri: 'test://static-text', isTemplate: false, mimeType: 'text/plain' })
  )
  expect(offers.resources.some(({ isTemplate }) => isTemplate)).toBe(true)
  const prompt = offers.prompts.find(({ name }) => name === 'test_prompt_with_arguments')
  expect(prompt?.arguments).toMatchObject([{ isRequired: true }, { isRequired: true }])

  const read = (uri: string) => ask<ResourceReply>('POST', '/full/resource', { uri })
  expect((await read('test://static-text')).json.content).toMatchObject([
    { type: 'text', text: 'This is the content of the static text resource.' }
  ])
  expect((await read('test://static-binary')).json.content).toMatchObject([{ type: 'image', mimeType: 'image/png' }])
  expect(await read('')).toMatchObject({ status: 400 })
  expect(begin.mock.calls).toMatchObject([
    [{ server: 'full', tool: 'resources/read', args: { uri: 'test://static-text' } }],
    [{ args: { uri: 'test://static-binary' } }]
  ])
  const args = Object.fromEntries((prompt?.arguments ?? []).map(({ name }) => [name, `<b>${name}</b>`]))
  const said = (await ask<PromptReply>('POST', '/full/prompt', { name: prompt?.name, arguments: args })).json
  expect(said.messages).toMatchObject([{ role: 'user', content: [{ type: 'text' }] }])
  expect(JSON.stringify(said)).toContain('<b>')
  const embedded = { name: 'test_prompt_with_embedded_resource', arguments: { resourceUri: 'x:y' } }
  expect((await ask<PromptReply>('POST', '/full/prompt', embedded)).text).toContain('"text":"x"')

  expect((await ask<OffersReply>('GET', '/plain/offers')).json).toEqual({ resources: [], prompts: [], problems: [] })
  expect((await ask<OffersReply>('GET', '/closed/offers')).json).toEqual({ resources: [], prompts: [], problems: [] })
  const denied = { status: 403, json: { error: { code: 'denied_by_policy' } } }
  expect(await ask('POST', '/closed/resource', { uri: 'test://static-text' })).toMatchObject(denied)
  expect(await ask('POST', '/closed/prompt', embedded)).toMatchObject(denied)
  expect(connections.state('closed')?.state).toBe('running')
})

// Checked: if what the server says is passed on, all of them show the key.
it('shows no secret that the server repeats', async () => {
  const SECRET = 'sk-hidden-value-1234567890'
  const { ask } = await openServerRoutes({ full: child('conformance-server', [], { env: { API_KEY: SECRET } }) })
  const { definition } = (await ask<TriedTool>('GET', '/full/tools/json_schema_2020_12_tool')).json
  const args = { name: SECRET, address: { street: SECRET, city: 'x' } }
  const said = [
    await ask('POST', '/full/resource', { uri: `test://template/${SECRET}/data` }),
    await ask('POST', '/full/prompt', {
      name: 'test_prompt_with_arguments',
      arguments: { arg1: SECRET, arg2: `${'x'.repeat(30)}${SECRET}` }
    }),
    await ask('POST', '/full/call', { tool: 'json_schema_2020_12_tool', args, definition, isConfirmed: true })
  ]
  for (const { status, text } of said) {
    expect([status, text]).toEqual([200, expect.stringContaining('[secret]')])
    expect(text).not.toContain(SECRET)
  }
})

// Checked: if the names of our settings are not passed to the credentials, the server starts with the admin token.
it('starts no server that would get a token of this instance', async () => {
  const env = { KEY: ['$', '{env:ADMIN_TOKEN}'].join('') }
  const tokens = { ADMIN_TOKEN: 'admin-1234567890' }
  const { gateway } = await openServerRoutes({ greedy: child('steady', [], { env }) }, '', tokens)
  const { connections } = await gateway.core()
  const caller = { owner: 'local', door: 'stdio' } as const
  const start = connections.test('greedy', { caller, signal: new AbortController().signal })
  await expect(start).rejects.toThrow('"greedy" could not be started')
})
