import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { noAudit } from '../audit/audit.fixture.ts'
import { child, LOCAL, openTestConnections } from '../connections/connections.fixture.ts'
import { createPolicy } from '../policy/approval-policy.ts'
import { createRouter } from '../routing/router.ts'
import { AT_ONCE } from '../routing/usage/usage-memory.ts'
import { Discovery } from './execute/discovery.ts'
import { execute } from './execute/execute.ts'
import { RecentOffers } from './execute/recent-offers.ts'

const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const reader = (name: string, description: string) => ({ name, description, annotations: { readOnlyHint: true } })
const TOOLS = [
  reader('list_coffees', 'Lists all coffees on the menu.'),
  reader('get_forecast', 'Returns the weather forecast.'),
  reader('list_secrets', 'Lists the passwords of the vault.')
]

async function open() {
  const dir = temporaryFolder()
  const [file, calls] = [join(dir, 'tools'), join(dir, 'calls')]
  writeFileSync(file, JSON.stringify(TOOLS))
  writeFileSync(calls, '')
  const test = await openTestConnections({ home: child('shaped', [file, calls]) })
  closers.push(() => test.close())
  const router = createRouter({ schedule: AT_ONCE })
  const policy = createPolicy([{ glob: '*', rule: 'allow' }])
  const core = { ...test, router, policy, audit: noAudit, learn: () => {} }
  const context = { caller: LOCAL, signal: new AbortController().signal }
  router.setServer(
    'home',
    (await test.connections.list('home', context)).map((tool) => ({ ...tool, server: 'home' }))
  )
  const discovery = new Discovery()
  const ask = async (request: string) => {
    const done = await execute(core, discovery, { request, params: undefined }, context, new RecentOffers())
    return done.kind === 'result' ? { ran: done.route.tool } : done.question
  }
  const learn = (request: string, tool: string, times: number) => {
    for (let at = 0; at < times; at++) router.learn({ request, server: 'home', tool, at, owner: LOCAL.owner })
  }
  return { ask, learn, ran: () => readFileSync(calls, 'utf8') }
}

// Checked: if past choices count for what runs, the passwords are listed.
it('past choices offer a tool, but nothing runs that the words of the sentence do not ask for', async () => {
  const { ask, learn, ran } = await open()
  const sentence = 'show me the usual morning things'
  learn(sentence, 'list_secrets', 20)
  const answer = await ask(sentence)
  expect(ran()).toBe('')
  expect(answer).toMatchObject({ status: 'needs_confirmation', tool: 'list_secrets' })
  expect(answer).toMatchObject({ reason: expect.stringContaining('Past choices lead to this tool') })
})

// Checked: if past choices count for what runs, the passwords are listed here too.
it('past choices of the same words for another tool stop the sentence instead of turning it round', async () => {
  const { ask, learn, ran } = await open()
  expect(await ask('show the weather forecast')).toEqual({ ran: 'get_forecast' })
  learn('show the weather forecast', 'list_secrets', 20)
  expect(await ask('show the weather forecast')).toMatchObject({ status: expect.stringMatching(/^needs_/) })
  expect(ran()).toBe('get_forecast {}\n')
})

// Checked: if past choices for other words stop it too, this needs confirmation.
it('past choices of other words do not stop a sentence that is sure without them', async () => {
  const { ask, learn } = await open()
  for (const what of ['vault', 'keys', 'tokens', 'codes', 'pins']) learn(`show the weather ${what}`, 'list_secrets', 3)
  expect(await ask('show the weather forecast')).toEqual({ ran: 'get_forecast' })
})

it('one past choice does not outweigh the words', async () => {
  const { ask, learn, ran } = await open()
  learn('show the weather forecast of Oslo', 'list_secrets', 1)
  const answers = [await ask('show the weather forecast'), await ask('show the weather forecast please')]
  expect(answers).toEqual([{ ran: 'get_forecast' }, { ran: 'get_forecast' }])
  expect(ran()).not.toContain('secrets')
})

// Seen failing: the first choice changed nothing.
it('one past choice is offered for the same words, if they do not ask for another tool', async () => {
  const { ask, learn, ran } = await open()
  const sentence = 'show me the usual morning things'
  expect(await ask(sentence)).not.toMatchObject({ tool: 'list_secrets' })
  learn(sentence, 'list_secrets', 1)
  expect(await ask('Show me the usual morning things!')).toMatchObject({
    status: 'needs_confirmation',
    tool: 'list_secrets'
  })
  learn('list the coffees on the menu', 'get_forecast', 1)
  expect(await ask('list the coffees on the menu')).toEqual({ ran: 'list_coffees' })
  expect(ran()).not.toContain('secrets')
})
