import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'

const now = useFakePage()

it('opens a long conversation at its end, and loads what is older as it is scrolled up to, in its place', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.pageSize = 40
    for (let turn = 0; turn < 200; turn++)
      opened.append('user:message', { turnId: `t${turn}`, text: `message ${turn}.` })
  })
  const list = me.page.getByRole('region', { name: 'Messages' })
  await list.getByText('message 199.').waitFor()
  expect(await list.getByText('message 159.').count()).toBe(0)
  // Seen before: texts for screen readers made the document as tall as the conversation.
  await expect.poll(() => me.page.evaluate('document.documentElement.scrollHeight - innerHeight')).toBe(0)
  await list.hover()
  // All of it can be reached by scrolling alone.
  await expect
    .poll(async () => {
      await me.page.mouse.wheel(0, -2000)
      return list.getByText('message 0.', { exact: true }).count()
    })
    .toBe(1)
  await me.button('Show earlier messages').waitFor({ state: 'detached' })
  // Loaded entries stay, in their order, when the connection comes back with a snapshot of the end.
  session.live('session:snapshot', session.snapshot())
  session.append('user:message', { turnId: 'last', text: 'the very last' })
  // It came from elsewhere: the reader stays, and goes there when they like.
  await me.button('New messages').click()
  await list.getByText('the very last').waitFor()
  await list.hover()
  await expect
    .poll(async () => {
      await me.page.mouse.wheel(0, -2000)
      return list.getByText('message 0.', { exact: true }).count()
    })
    .toBe(1)
  expect(now().offences).toEqual([])
})

it('lists a page of sessions, more as the list is scrolled, and says how many there are', async () => {
  const { me } = await now().arrive()
  for (let n = 0; n < 130; n++)
    now()
      .fake.session(`s${n}`)
      .append('user:message', { turnId: 't', text: `talk ${n}.` })
  await me.page.reload()
  const list = me.page.getByRole('navigation', { name: 'Sessions' })
  await list.getByText('Show more of 131 sessions').waitFor()
  expect(await list.getByText('talk 100.').count()).toBe(0)
  await expect
    .poll(async () => {
      // Coming into sight is enough; it is gone when all are listed.
      await list
        .getByText('Show more of')
        .scrollIntoViewIfNeeded({ timeout: 1000 })
        .catch(() => {})
      return list.getByText('talk 129.').count()
    })
    .toBe(1)
})

// Seen before: only sessions that were loaded counted, and only they could be found.
it('counts, searches and warns of all sessions, not only of those that are listed', async () => {
  const { me } = await now().arrive()
  const { fake } = now()
  for (let n = 0; n < 130; n++) fake.session(`s${n}`).append('user:message', { turnId: 't', text: `talk ${n}.` })
  const calls = (...ids: string[]) => ids.map((callId) => ({ callId, name: 'read_file', args: {} }))
  fake.session('s128').ask('t', calls('a', 'b'))
  fake.session('s129').ask('t', calls('c'))
  await me.page.evaluate(`localStorage.setItem('mcp-orchestrator:draft:s129', 'half a thought')`)
  await me.page.reload()
  const list = me.page.getByRole('navigation', { name: 'Sessions' })
  await list.getByText('Show more of 131 sessions').waitFor()
  expect(await list.getByText('talk 129.').count()).toBe(0)
  await me
    .button(/^Waiting for you/)
    .first()
    .click()
  const inbox = me.page.getByRole('dialog', { name: 'Waiting for you' })
  await inbox.getByText('talk 128.').waitFor()
  await expect
    .poll(() => inbox.getByRole('region', { name: 'talk 128.' }).textContent())
    .toContain('2 calls need your approval')
  await expect
    .poll(() => inbox.getByRole('region', { name: 'talk 129.' }).textContent())
    .toContain('1 call needs your approval')
  await me.page.keyboard.press('Escape')

  const field = list.getByRole('searchbox', { name: 'Search all sessions and messages' })
  await field.fill('TALK 12')
  await list.getByRole('button', { name: 'You: talk 129.' }).waitFor()
  await expect.poll(() => list.getByRole('button', { name: /^talk 12/ }).count()).toBe(11)
  await field.fill('no such talk')
  await list.getByText('Nothing was found.').waitFor()
  await field.press('Escape')
  await list.getByText('Show more of 131 sessions').waitFor()

  await list.getByText('Delete all sessions').click()
  const dialog = me.page.getByRole('dialog', { name: 'Delete all sessions?' })
  await dialog.getByText('131 sessions, with their conversations').waitFor()
  await dialog.getByText('3 calls that need your approval will be cancelled').waitFor()
  await dialog.getByRole('button', { name: 'Delete all' }).and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => me.page.evaluate(`localStorage.getItem('mcp-orchestrator:draft:s129')`)).toBe(null)
  expect(now().offences).toEqual([])
})
