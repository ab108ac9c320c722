/** Each message of a person reaches its session once, despite lost connections, reloads and changes of the session. */
import { beforeEach, expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import { WorkspacePage } from './workspace-page.ts'

const now = useFakePage()
let me: WorkspacePage
let session: FakeSession
beforeEach(async () => {
  ;({ me, session } = await now().arrive())
})

const said = (of = session) => of.transcript.entries.flatMap((entry) => (entry.kind === 'user' ? [entry.text] : []))
const hasSaid = (texts: string[], of = session) => expect.poll(() => said(of)).toEqual(texts)
const endTurn = () => session.append('turn:end', { turnId: session.transcript.turnId ?? '', reason: 'done' })
const waiting = () => me.page.getByText('Queued:')
const written = () => me.composer.inputValue()

async function toNewSession(): Promise<FakeSession> {
  const before = me.sessionId()
  await me.button('New session').first().click()
  await expect.poll(() => me.sessionId()).not.toBe(before)
  return now().fake.session(me.sessionId())
}
async function backTo({ id }: FakeSession): Promise<void> {
  await me.page.goBack()
  await expect.poll(() => me.sessionId()).toBe(id)
  await me.composer.waitFor()
}

// Seen before: they were shown and sent as one, and became a draft that nobody sent.
it('keeps queued messages through a reload and a change of the session, and sends them one by one', async () => {
  await me.say('first')
  await me.page.getByText('Thinking…').waitFor()
  await me.say('second')
  await me.say('third')
  await me.page.getByText('Queued: second', { exact: true }).waitFor()
  await me.page.reload()
  await me.page.getByText('Queued: third', { exact: true }).waitFor()
  await expect.poll(written).toBe('')
  endTurn()
  await hasSaid(['first', 'second'])
  await me.page.getByText('Queued: second').waitFor({ state: 'hidden' })

  await toNewSession()
  await waiting().waitFor({ state: 'hidden' })
  await expect.poll(written).toBe('')
  await backTo(session)
  await me.page.getByText('Queued: third').waitFor()
  endTurn()
  await hasSaid(['first', 'second', 'third'])
  await me.page.reload()
  await me.page.getByText('Thinking…').waitFor()
  await expect.poll(() => waiting().count()).toBe(0)
  await expect.poll(written).toBe('')
})

it('keeps the draft of each tab', async () => {
  await me.say('first')
  await me.composer.fill('of the first tab')
  const other = await me.page.context().newPage()
  await other.goto(me.page.url())
  const { composer } = new WorkspacePage(other)
  await expect.poll(() => composer.inputValue()).toBe('of the first tab')
  await composer.fill('of the second tab')
  await me.page.reload()
  await expect.poll(written).toBe('of the first tab')
  await other.reload()
  await expect.poll(() => composer.inputValue()).toBe('of the second tab')
})

it('forgets what was written in a session that is deleted', async () => {
  await me.say('first')
  await me.page.getByText('Thinking…').waitFor()
  await me.composer.fill('half a thought')
  await me.page.route('**/api/sessions/*', (route) => route.fulfill({ status: 204 }))
  await me.button('Delete all sessions').waitFor()
  await me.page.getByRole('button', { name: /^More/ }).first().click()
  await me.page.getByRole('button', { name: 'Delete', exact: true }).last().click()
  await me.page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
  await expect.poll(() => me.page.evaluate('JSON.stringify(localStorage)')).not.toContain('half a thought')
})

it('takes what is being written over when the session is deleted elsewhere', async () => {
  await me.say('first')
  await me.page.getByText('Thinking…').waitFor()
  await me.say('second')
  await waiting().waitFor()
  await me.composer.fill('half a thought')
  const before = me.sessionId()
  now().fake.delete(before)
  await me.page.getByText('This session was deleted').waitFor()
  await expect.poll(() => me.sessionId()).not.toBe(before)
  await expect.poll(written).toBe('second\nhalf a thought')
  await expect.poll(() => me.page.evaluate('JSON.stringify(localStorage)')).not.toContain(before)
  await backTo(now().fake.session(before))
  await me.composer.fill('in another of that name')
  await toNewSession()
  await expect.poll(written).toBe('')
})

it('goes on in a new session with what is being written when the server lost its state, and says so', async () => {
  await me.say('first')
  await me.page.getByText('Thinking…').waitFor()
  await me.composer.fill('half a thought')
  const before = me.sessionId()
  now().fake.lose(before)
  await me.page.getByText('The server lost its state').waitFor()
  await expect.poll(() => me.sessionId()).not.toBe(before)
  await expect.poll(written).toBe('half a thought')
})

it('keeps a message that arrived when only the answer was lost, and sends the next one', async () => {
  session.loses = 'answers'
  await me.say('one')
  await hasSaid(['one'])
  endTurn()
  await me.say('two')
  await waiting().waitFor()
  await me.composer.fill('three, half wr')
  session.loses = 'nothing'
  now().fake.breakConnections()
  await hasSaid(['one', 'two'])
  await waiting().waitFor({ state: 'hidden' })
  expect(await written()).toBe('three, half wr')
  expect(said()).toEqual(['one', 'two'])
})

it('sends again what was lost with the connection', async () => {
  session.loses = 'commands'
  await me.say('one')
  await me.composer.fill('two')
  session.loses = 'nothing'
  now().fake.breakConnections()
  await hasSaid(['one'])
  await waiting().waitFor({ state: 'hidden' })
  expect(await written()).toBe('two')
  await me.composer.press('Enter')
  await waiting().waitFor()
  expect(said()).toEqual(['one'])
})

it('leaves a message in the session it was written in', async () => {
  session.loses = 'commands'
  await me.say('of the first')
  const second = await toNewSession()
  await expect.poll(written).toBe('')
  await me.say('of the second')
  await hasSaid(['of the second'], second)
  session.loses = 'nothing'
  await backTo(session)
  await expect.poll(written).toBe('of the first')

  session.loses = 'answers'
  await me.composer.press('Enter')
  await hasSaid(['of the first'])
  await me.page.goForward()
  await expect.poll(() => me.sessionId()).toBe(second.id)
  await backTo(session)
  await me.page.getByText('of the first').first().waitFor()
  await expect.poll(written).toBe('')
  expect(said(second)).toEqual(['of the second'])
})

it('restores a message that was being sent when the page was reloaded, unless it has arrived', async () => {
  session.loses = 'answers'
  await me.say('arrived')
  await hasSaid(['arrived'])
  await me.page.reload()
  await me.page.getByText('arrived').first().waitFor()
  await expect.poll(written).toBe('')
  endTurn()
  await me.page.getByText('Thinking…').waitFor({ state: 'hidden' })

  session.loses = 'commands'
  await me.say('taken along')
  await me.page.reload()
  await expect.poll(written).toBe('taken along')
  session.loses = 'nothing'
  await me.composer.press('Enter')
  await hasSaid(['arrived', 'taken along'])
})

it('removes a queued message, and brings it back into the field on request', async () => {
  await me.say('first')
  await me.page.getByText('Thinking…').waitFor()
  await me.say('second')
  await me.say('third')
  await me.button('Remove this queued message').first().click()
  await me.page.getByText('Queued: second').waitFor({ state: 'hidden' })
  await me.page.getByText('Queued: third').waitFor()
  await me.page.getByRole('status').getByRole('button', { name: 'Undo' }).click()
  await expect.poll(written).toBe('second')
  await me.page.reload()
  await me.page.getByText('Queued: third').waitFor()
  await expect.poll(written).toBe('second')
  endTurn()
  await hasSaid(['first', 'third'])
})
