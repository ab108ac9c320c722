/** Waiting for you: one list of what needs the person, in all sessions and of outside clients. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { inboxCard } from '../inbox-card.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()
const run = (callId: string) => ({ callId, name: 'execute_command', args: { command: `echo ${callId}` } })
function ask(session: FakeSession, text: string, ...callIds: string[]): void {
  session.append('user:message', { turnId: 't', text })
  session.ask('t', callIds.map(run))
  now().fake.tell(session.id)
}
const icon = (page: Page) => page.evaluate<string>(`decodeURIComponent(document.getElementById('favicon').href)`)

// Seen before: other sessions were asked about every 5 seconds while the dialog was open, and never in the title.
it('counts what waits everywhere in sidebar, title and icon as soon as the server tells it', async () => {
  const { me, session } = await now().arrive()
  const { fake } = now()
  await me.page.evaluate('document.hasFocus()')
  ask(session, 'here', 'a', 'b')
  ask(fake.session('another-chat'), 'there', 'c')
  await expect.poll(() => me.page.title()).toMatch(/^\(3\) Needs your approval/)
  fake.approvals = [{ ...inboxCard('one'), asker: { door: 'http', client: 'editor/1.2' } }]
  fake.tellInbox()
  await expect.poll(() => me.page.title()).toMatch(/^\(4\) Needs your approval/)
  await expect.poll(() => icon(me.page)).toContain('>4</text>')
  const sidebar = me.page.getByRole('navigation', { name: 'Sessions' })
  await sidebar.getByRole('button', { name: 'Waiting for you 4' }).waitFor()
  await me.button('Waiting for you: 4').waitFor()
  // Decided in another tab, or by someone else.
  fake.session('another-chat').append('tool:approval_resolved', { callId: 'c', approved: true, by: 'human' })
  fake.tell('another-chat')
  fake.approvals = []
  fake.tellInbox()
  await expect.poll(() => me.page.title()).toMatch(/^\(2\) Needs your approval/)
  session.append('turn:end', { turnId: 't', reason: 'cancelled' })
  await expect.poll(() => me.page.title()).not.toContain('Needs')
  await expect.poll(() => icon(me.page)).toContain('/favicon.svg')
  // Events from the time without a connection are loaded.
  fake.session('another-chat').append('turn:end', { turnId: 't', reason: 'done' })
  fake.session('another-chat').append('user:message', { turnId: 't2', text: 'more' })
  fake.session('another-chat').ask('t2', [run('d')])
  fake.breakConnections()
  await expect.poll(() => me.page.title()).toMatch(/^\(1\) Needs your approval/)
  expect(now().offences.filter((text) => !/WebSocket|ERR_/.test(text))).toEqual([])
})

it('opens a call of another session at its card, and decides calls of outside clients in place', async () => {
  const { me, session } = await now().arrive()
  const { fake } = now()
  const other = fake.session('another-chat')
  for (let turn = 0; turn < 40; turn++) {
    other.append('user:message', { turnId: `t${turn}`, text: `message ${turn}` })
    other.append('turn:end', { turnId: `t${turn}`, reason: 'done' })
  }
  ask(other, 'there', 'c', 'd', 'e')
  fake.approvals = [{ ...inboxCard('one'), asker: { door: 'http', client: 'editor/1.2' } }]
  fake.tellInbox()
  await me.button('Waiting for you: 4').click()
  const dialog = me.page.getByRole('dialog', { name: 'Waiting for you' })
  await dialog.getByText('editor/1.2 asks for this call over HTTP.').waitFor()
  await expect
    .poll(() => me.page.locator('dialog [aria-live]').textContent())
    .toContain('4 tool calls need your approval.')
  expect(await seriousFaults(me.page)).toEqual([])
  await dialog.getByRole('button', { name: 'Approve' }).and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => fake.answered).toEqual(['one'])
  await dialog.getByRole('region', { name: 'Session message 0' }).getByRole('button', { name: 'Run echo d' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await expect.poll(() => me.page.evaluate('document.activeElement.dataset.call')).toBe('d')
  await expect.poll(() => me.sessionId()).toBe('another-chat')
  expect(session.id).not.toBe('another-chat')
  expect(now().offences).toEqual([])
})

it('says in a sentence what an outside client wants, and what the server says about its tool', async () => {
  const { me } = await now().arrive()
  const claims = { description: 'Edits a file in place.\u202e\n\nMore about it.', readOnly: false, destructive: true }
  const args = { path: 'src/app.ts', edits: [{ oldText: 'a', newText: 'b' }] }
  now().fake.approvals = [{ ...inboxCard('one', args), tool: 'edit_file', claims }, inboxCard('two')]
  now().fake.tellInbox()
  await me.button('Waiting for you: 2').click()
  const card = me.page.getByRole('region', { name: /asks to run edit_file/ })
  await card.getByText('edit_file: src/app.ts, 1 edit').waitFor()
  await card.getByText('The server says: can destroy or overwrite').waitFor()
  await card.getByText('Edits a file in place.').waitFor()
  await card.getByText('U+202E').waitFor()
  expect(await card.getByText('More about it.').count()).toBe(0)
  await card.getByRole('button', { name: 'More' }).click()
  await card.getByText('More about it.').waitFor()
  await me.page.getByText('write: id “two”').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

// Seen before: a reload while typing lost the reason.
it('keeps the reason for rejecting a call of an outside client through a reload', async () => {
  const { me } = await now().arrive()
  now().fake.approvals = [inboxCard('one')]
  now().fake.tellInbox()
  const reject = async () => {
    await me.button('Waiting for you: 1').click()
    return me.page.getByRole('textbox', { name: /Reason/ })
  }
  await me.button('Waiting for you: 1').click()
  const ready = me.page.locator('[aria-disabled=false]')
  await me.page.getByRole('dialog').getByRole('button', { name: 'Reject' }).and(ready).click()
  await me.page.getByRole('textbox', { name: /Reason/ }).fill('use the other file')
  await me.page.reload()
  const field = await reject()
  await expect.poll(() => field.inputValue()).toBe('use the other file')
  now().fake.approvals = []
  now().fake.tellInbox()
  await field.waitFor({ state: 'detached' })
  await expect
    .poll(() => me.page.evaluate(`Object.keys(sessionStorage).filter((key) => key.includes('inbox')).length`))
    .toBe(0)
})

// Seen before: it waited unnoticed until its session was opened again.
it('says that a message is queued in another session', async () => {
  const { me } = await now().arrive((session) => session.append('user:message', { turnId: 't', text: 'a long turn' }))
  await me.say('and then this')
  await me.page.getByText('and then this').first().waitFor()
  await me.page.getByRole('navigation', { name: 'Sessions' }).getByRole('button', { name: 'New session' }).click()
  const item = me.page
    .getByRole('navigation', { name: 'Sessions' })
    .getByRole('listitem')
    .filter({ hasText: 'a long turn' })
  await item.getByText('message queued').waitFor()
  await me
    .button(/^Waiting for you/)
    .first()
    .click()
  const dialog = me.page.getByRole('dialog', { name: 'Waiting for you' })
  await dialog.getByRole('region', { name: 'Queued messages' }).getByRole('button', { name: 'a long turn' }).click()
  await dialog.waitFor({ state: 'hidden' })
  await item.getByText('message queued').waitFor({ state: 'detached' })
})

// Seen before: one long path made every row wider than the dialog, and nothing showed that a command went on in later lines.
it.each([
  ['a desktop', { width: 1440, height: 900 }],
  ['a phone', { width: 390, height: 844 }]
])('keeps long calls within the dialog, and shows that there is more: %s', async (_, viewport) => {
  const { me, session } = await now().arrive(() => {}, { viewport })
  const path = `big/${'deep-folder-name/'.repeat(12)}file.txt`
  session.append('user:message', { turnId: 't', text: 'go' })
  session.ask('t', [
    { callId: 'long', name: 'write_file', args: { path, content: 'x' } },
    { callId: 'lines', name: 'execute_command', args: { command: 'echo harmless\nrm -rf data' } },
    { callId: 'gap', name: 'execute_command', args: { command: `echo calm${' '.repeat(200)}; rm -rf data` } }
  ])
  await me.button('Waiting for you: 3').click()
  const dialog = me.page.getByRole('dialog', { name: 'Waiting for you' })
  await dialog.getByRole('button', { name: /^Run echo harmless …/ }).waitFor()
  await dialog.getByRole('button', { name: /^Run echo calm … ; rm -rf data/ }).waitFor()
  const width = (await dialog.boundingBox())?.width ?? 0
  for (const row of await dialog.getByRole('listitem').all())
    expect((await row.boundingBox())?.width).toBeLessThanOrEqual(width)
})
