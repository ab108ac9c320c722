import { expect, it } from 'vitest'
import { PHONE } from '../../support/browser.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeServer } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()
const DAY_MS = 86_400_000

function talk(fake: FakeServer, id: string, text: string, daysAgo = 0): void {
  const session = fake.session(id)
  session.append('user:message', { turnId: 't', text })
  session.activeAt = Date.now() - daysAgo * DAY_MS
}
const listOf = (me: WorkspacePage) => me.page.getByRole('navigation', { name: 'Sessions' })

it('finds messages in all sessions, and opens the one that was chosen, however far up it is', async () => {
  const { fake, open } = now()
  fake.onOpen = (session) => {
    session.pageSize = 20
  }
  const far = fake.session('far-away-session')
  for (let n = 0; n < 100; n++) {
    far.append('user:message', { turnId: `t${n}`, text: n === 7 ? 'a needle <b>in</b> the hay' : `straw ${n}` })
    far.append('agent:response', { turnId: `t${n}`, text: `${'words '.repeat(60)}${n}` })
    far.append('turn:end', { turnId: `t${n}`, reason: 'done' })
  }
  const me = await open()
  await me.composer.waitFor()
  const field = listOf(me).getByRole('searchbox', { name: 'Search all sessions and messages' })
  expect(await me.page.getByRole('textbox', { name: 'Message' }).count()).toBe(1)
  await field.fill('NEEDLE')
  const results = me.page.getByRole('list', { name: 'Search results' })
  const found = results.getByRole('button', { name: 'You: a needle' })
  await expect.poll(() => found.locator('mark').textContent()).toBe('needle')
  expect(await results.locator('b').count()).toBe(0)
  await found.focus()
  await me.page.keyboard.press('Enter')
  const message = me.page.getByRole('region', { name: 'Messages' }).getByText('a needle <b>in</b> the hay')
  await message.waitFor()
  await expect.poll(() => me.page.locator('[data-row]:focus').getByText('a needle').count()).toBe(1)
  await expect
    .poll(async () => {
      const { y = -1 } = (await message.boundingBox()) ?? {}
      return y > 0 && y < 700
    })
    .toBe(true)
  await expect.poll(() => me.sessionId()).toBe('far-away-session')
  await field.fill('no such thing')
  await results.getByText('Nothing was found.').waitFor()
  await field.press('Escape')
  await listOf(me).getByRole('region', { name: 'Today' }).waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

it('groups sessions by date, pins them and archives them, in every tab at once', async () => {
  const { me } = await now().arrive()
  const { fake } = now()
  talk(fake, 'of-today', 'talk of today')
  talk(fake, 'of-yesterday', 'talk of yesterday', 1)
  talk(fake, 'of-this-week', 'talk of this week', 4)
  talk(fake, 'of-long-ago', 'talk of long ago', 400)
  for (const id of fake.sessions.keys()) fake.tell(id)
  const list = listOf(me)
  const group = (name: string | RegExp) => list.getByRole('region', { name })
  await group('Today').getByText('talk of today').waitFor()
  await group('Yesterday').getByText('talk of yesterday').waitFor()
  await group('Previous 7 days').getByText('talk of this week').waitFor()
  await group(/20\d\d/)
    .getByText('talk of long ago')
    .waitFor()
  await me.button('More for talk of long ago').click()
  await me.button(/^Pin$/).click()
  await group('Pinned').getByText('talk of long ago').waitFor()
  await expect.poll(() => group(/20\d\d/).count()).toBe(0)
  await expect.poll(() => list.getByRole('heading').first().textContent()).toBe('Pinned')

  await me.button('More for talk of today').click()
  await me.button(/^Archive$/).click()
  await list.getByText('talk of today').waitFor({ state: 'detached' })
  await expect.poll(() => fake.session('of-today').marks).toEqual({ isArchived: true })
  await list.getByRole('button', { name: 'Archived' }).click()
  await list.getByText('talk of today').waitFor()
  await expect.poll(() => list.getByText('talk of yesterday').count()).toBe(0)
  // Someone writes in it elsewhere: it comes back by itself.
  fake.session('of-today').marks = {}
  fake.tell('of-today')
  await list.getByText('You have no archived sessions.').waitFor()
  await me.button('Back to the sessions').click()
  await group('Today').getByText('talk of today').waitFor()
  // Another tab renames one and deletes another.
  fake.session('of-yesterday').marks = { title: 'renamed elsewhere' }
  fake.tell('of-yesterday')
  fake.sessions.delete('of-this-week')
  fake.tell('of-this-week')
  await list.getByText('renamed elsewhere').waitFor()
  await list.getByText('talk of this week').waitFor({ state: 'detached' })
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

// Seen before: a click on the wrong session deleted it for good, and Back opened an empty one under its address.
it('brings a deleted session back with Undo, also the open one with what was typed in it', async () => {
  const { me } = await now().arrive((session) => session.append('user:message', { turnId: 't', text: 'my talk' }))
  now().fake.onOpen = () => {}
  const id = me.sessionId()
  await me.composer.fill('half a thought')
  await me.button('More for my talk').click()
  await me.button(/^Delete$/).click()
  const dialog = me.page.getByRole('dialog', { name: 'Delete this session?' })
  await dialog.getByRole('button', { name: 'Delete' }).and(me.page.locator('[aria-disabled=false]')).click()
  const deleted = me.page.getByRole('status').filter({ hasText: 'Deleted “my talk”.' })
  await deleted.waitFor()
  await listOf(me).getByText('my talk').waitFor({ state: 'detached' })
  await expect.poll(() => me.sessionId()).not.toBe(id)
  await me.page.goBack()
  await me.page.getByText('That session was deleted.').waitFor()
  await expect.poll(() => me.sessionId()).not.toBe(id)
  await deleted.getByRole('button', { name: 'Undo' }).click()
  await listOf(me).getByText('my talk').waitFor()
  await expect.poll(() => me.sessionId()).toBe(id)
  await expect.poll(() => me.composer.inputValue()).toBe('half a thought')
  await deleted.waitFor({ state: 'hidden' })
  expect(now().offences).toEqual([])
})

// Seen before: the list covered a window that had become narrow, names ended in “…”, and the server's error about JSON was shown.
it('closes in a window that becomes narrow, shows cut-off names whole, and says where an imported file is wrong', async () => {
  const title = 'A long name of a session that has no room in the list of them'.slice(0, 60)
  const { me, session } = await now().arrive((opened) => opened.append('user:message', { turnId: 't', text: title }))
  const { page } = me
  const list = page.getByRole('navigation', { name: 'Sessions' })
  now().fake.tell(session.id)
  const name = list.locator('.truncate', { hasText: title })
  // The name may be drawn anew under the pointer.
  const hovered = async () => {
    await me.composer.hover()
    await name.hover()
    return name.getAttribute('title')
  }
  await expect.poll(hovered).toBe(title)
  const file = { name: 'talk.json', mimeType: 'application/json', buffer: Buffer.from('{\n  "a": 1\n  "b": 2\n}') }
  await page.locator('input[type=file][accept*=json]').setInputFiles(file)
  await page.getByText('It is not valid JSON: line 3, column 3: a comma or } is missing here.').waitFor()
  await page.setViewportSize({ width: 600, height: 800 })
  await list.waitFor({ state: 'hidden' })
  await page.setViewportSize({ width: 1400, height: 800 })
  await list.waitFor()
})

it('goes to the search with a key, and shows all matches of a conversation', async () => {
  const { fake, arrive } = now()
  const long = fake.session('long-conversation')
  for (let n = 0; n < 12; n++) long.append('user:message', { turnId: `t${n}`, text: `needle ${n}` })
  const { me } = await arrive()
  const { page } = me
  await me.button('Hide the sessions').click()
  await me.composer.focus()
  await page.keyboard.press('Alt+KeyF')
  await expect.poll(() => page.evaluate('document.activeElement.type')).toBe('search')
  await page.keyboard.type('needle')
  const results = page.getByRole('list', { name: 'Search results' })
  const found = results.getByRole('button', { name: /^You: needle/ })
  await expect.poll(() => found.count()).toBe(3)
  await results.getByRole('button', { name: 'Show all 12 matches in needle 0' }).click()
  await expect.poll(() => found.count()).toBe(12)
  // The button is gone: the keyboard goes on at the first match that it has brought.
  await found.nth(3).and(page.locator(':focus')).waitFor()
  expect(await seriousFaults(page)).toEqual([])
  await found.last().click()
  await page.getByRole('region', { name: 'Messages' }).getByText('needle 0', { exact: true }).waitFor()
  expect(now().offences).toEqual([])
})

it('goes to the search with a key before the list was ever open', async () => {
  const { me } = await now().arrive(() => {}, { viewport: PHONE })
  await me.page.keyboard.press('Alt+KeyF')
  await expect.poll(() => me.page.evaluate('document.activeElement.type')).toBe('search')
})
