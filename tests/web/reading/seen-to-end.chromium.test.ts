/** Nobody approves what a box of the card still hides. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { inboxCard } from '../inbox-card.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()
const LONG = `ls${'\ntrue'.repeat(60)}\nrm -rf everything`
const asking =
  (...commands: string[]) =>
  (session: FakeSession) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    const calls = commands.map((command, at) => ({ callId: `c${at}`, name: 'execute_command', args: { command } }))
    session.ask('t', calls)
  }
const end = (me: WorkspacePage, label: string) =>
  me.page.locator(`[aria-label=${label}] > .seen-end`).first().scrollIntoViewIfNeeded()
const decided = ({ transcript }: FakeSession) =>
  Object.values(transcript.calls).flatMap(({ callId, decision }) => (decision?.approved ? [callId] : []))

// Checked: if the end is not asked for, the first click approves.
// Seen before: one click approved a command of which the end was below “More below”. And a card that grew to show its rest was scrolled
// to its end by the list, so that the next click approved what nobody had read.
it('approves no long command before its end was in view, however often one clicks', async () => {
  const { me, session } = await now().arrive(asking(LONG))
  const ready = me.page.locator('[data-approve][aria-disabled=false]')
  const place = await ready.boundingBox()
  const hint = me.page.getByRole('status').filter({ hasText: /You had not seen the last \d+ lines of this: Command/ })
  for (let click = 0; click < 2; click++) {
    await ready.click()
    await hint.waitFor()
    expect(decided(session)).toEqual([])
  }
  // Nothing has moved under the pointer.
  expect(await ready.boundingBox()).toEqual(place)
  await me.button('More below').click()
  await hint.waitFor()
  await end(me, 'Command')
  await hint.waitFor({ state: 'detached' })
  await ready.click()
  await expect.poll(() => decided(session)).toEqual(['c0'])
  expect(now().offences).toEqual([])
})

it('approves with one click what was scrolled through, and what is short', async () => {
  const { me, session } = await now().arrive(asking(LONG, 'ls'))
  const card = me.page.locator('[data-call=c0]')
  await card.locator('[data-approve][aria-disabled=false]').waitFor()
  await card.locator('[aria-label=Command]').evaluate((box) => box.scrollTo(0, box.scrollHeight))
  // A moment later it is scrolled back: it was seen.
  await me.button('More below').waitFor({ state: 'detached' })
  await card.locator('[aria-label=Command]').evaluate((box) => box.scrollTo(0, 0))
  await card.locator('[data-approve][aria-disabled=false]').click()
  await expect.poll(() => decided(session)).toEqual(['c0'])
  await me.page.locator('[data-call=c1] [data-approve][aria-disabled=false]').click()
  await expect.poll(() => decided(session)).toEqual(['c0', 'c1'])
})

it('does the same by keyboard, and opens no edit of what was not seen', async () => {
  const { me, session } = await now().arrive(asking(LONG))
  await me.page.keyboard.press('Alt+p')
  await me.page.locator('.approval-card:focus [data-approve][aria-disabled=false]').waitFor()
  await me.page.keyboard.press('e')
  await me.page.getByText(/You had not seen the last \d+ lines/).waitFor()
  expect(await me.page.locator('.approval-card textarea').count()).toBe(0)
  // The box has the keyboard, so its keys read on.
  await me.page.locator('[aria-label=Command]:focus').waitFor()
  await me.page.keyboard.press('End')
  await me.page.getByText(/You had not seen/).waitFor({ state: 'detached' })
  await me.page.keyboard.press('Alt+p')
  await me.approveByKeyboard()
  await expect.poll(() => decided(session)).toEqual(['c0'])
})

it('wants “Show all” to be pressed before a text that is cut is approved', async () => {
  const { me, session } = await now().arrive(asking(`${'x'.repeat(60_000)}THE END`))
  const ready = me.page.locator('[data-approve][aria-disabled=false]')
  await me.page.locator('[aria-label=Command]').evaluate((box) => box.scrollTo(0, box.scrollHeight))
  await ready.click()
  await me.page.getByText('Not all of this is shown: Command').waitFor()
  expect(decided(session)).toEqual([])
  await me.button('Show all').click()
  await end(me, 'Command')
  await me.page.getByText(/Not all of this/).waitFor({ state: 'detached' })
  await ready.click()
  await expect.poll(() => decided(session)).toEqual(['c0'])
})

it('keeps what was seen while the card is far from the screen', async () => {
  const { me, session } = await now().arrive((opened) => {
    asking(LONG)(opened)
    for (let at = 0; at < 80; at++) opened.append('session:notice', { code: 'x', message: `notice ${at}` })
  })
  const command = me.page.locator('[aria-label=Command]')
  await command.evaluate((box) => box.scrollTo(0, box.scrollHeight))
  await me.button('More below').waitFor({ state: 'detached' })
  const list = me.page.getByRole('region', { name: 'Messages' })
  await list.evaluate((box) => box.scrollTo(0, box.scrollHeight))
  await command.waitFor({ state: 'detached' })
  await list.evaluate((box) => box.scrollTo(0, 0))
  await me.page.locator('[data-approve][aria-disabled=false]').click()
  await expect.poll(() => decided(session)).toEqual(['c0'])
})

// In the inbox, boxes have their full height: who comes to a card's own buttons has passed its end.
it('lets nobody approve all calls of a program past the end of one that was not in view', async () => {
  const code = { runId: 'run', n: 1, line: 1, source: 'x', sources: [] }
  const text = `${'safe\n'.repeat(90)}HIDDEN END${'\n'.repeat(90)}`
  now().fake.approvals = [
    { ...inboxCard('a', { text }), code },
    { ...inboxCard('b', { text: `${text}.` }), code }
  ]
  const { me } = await now().arrive()
  await me.button('Waiting for you: 2').click()
  const all = me.button('Approve all 2 of this program')
  const unread = me.page.getByText('Read each call to its end before you approve them all.')
  await unread.waitFor()
  // A jump over the first card, as by the End key.
  await all.scrollIntoViewIfNeeded()
  await all.and(me.page.locator('[aria-disabled=true]')).waitFor()
  await unread.waitFor()
  // The jump may have shown the end of the second one.
  for (const id of ['a', 'b']) await me.page.locator(`[data-card=${id}] .seen-end`).first().scrollIntoViewIfNeeded()
  await unread.waitFor({ state: 'detached' })
  expect(now().fake.answered).toEqual([])
  await all.and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => now().fake.answered.toSorted()).toEqual(['a', 'b'])
  expect(now().offences).toEqual([])
})
