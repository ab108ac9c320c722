/** The card of a call that a program makes. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import { inboxCard } from '../inbox-card.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()

it('shows the line of the program, where the values come from, and what is uncertain', async () => {
  const code = {
    ...{ runId: 'r', n: 4, line: 7, source: `await tools.mail.send({ to: row.mail }) // ${'long '.repeat(60)}` },
    sources: [{ path: 'to', server: 'crm', tool: 'search', n: 3 }]
  }
  const warning = 'This call was under way when the server stopped.'
  now().fake.approvals = [{ ...inboxCard('x', { to: 'ada@example.test' }), code, warning }]
  const me = await now().open()
  await me
    .button(/^(Inbox|Waiting)/)
    .first()
    .click()
  const card = me.page.locator('.inbox-card')
  await card.waitFor()
  const text = async () => ((await card.textContent()) ?? '').replace(/\s+/g, ' ')
  await expect.poll(text).toContain('on its line 7:await tools.mail.send({ to: row.mail })')
  expect(await text()).toContain('to contains data from crm.search (call 3)')
  expect(await text()).toContain(warning)
  expect(await seriousFaults(me.page)).toEqual([])
})

// Checked: with the button above the cards, it is in view before most of what it approves.
it('offers to approve all calls of a program below the last one', async () => {
  const code = { ...{ runId: 'r', n: 1, line: 1, source: 'await tools.notes.write({})' }, sources: [] }
  now().fake.approvals = ['a', 'b'].map((id) => ({ ...inboxCard(id), code }))
  const me = await now().open()
  await me
    .button(/^(Inbox|Waiting)/)
    .first()
    .click()
  const group = me.page.getByRole('region', { name: 'Calls of one program' })
  await group.locator('[data-card="b"]').waitFor()
  const all = group.getByRole('button').last()
  await expect.poll(() => all.textContent()).toContain('Approve all 2 of this program')
  await all.and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => now().fake.answered.toSorted()).toEqual(['a', 'b'])
})

const opened = async (...ids: string[]) => {
  const code = { ...{ runId: 'r', n: 1, line: 1, source: 'await tools.notes.write({})' }, sources: [] }
  now().fake.approvals = ids.map((id) => ({ ...inboxCard(id), code }))
  const me = await now().open()
  await me
    .button(/^(Inbox|Waiting)/)
    .first()
    .click()
  const card = (id: string) => me.page.locator(`[data-card="${id}"]`)
  return { me, card, all: me.button(/^Approve .* of this program/) }
}

it('approves no call of a program that the person is rejecting, and keeps the reason', async () => {
  const { me, card, all } = await opened('a', 'b', 'c')
  await card('a')
    .getByRole('button', { name: /^Reject/ })
    .and(me.page.locator('[aria-disabled=false]'))
    .click()
  await card('a').getByRole('textbox').fill('wrong file')
  await expect.poll(() => all.textContent()).toContain('Approve the other 2 of this program')
  for (const id of ['b', 'c']) await card(id).locator('.seen-end').scrollIntoViewIfNeeded()
  await all.and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => now().fake.answered.toSorted()).toEqual(['b', 'c'])
  expect(await card('a').getByRole('textbox').inputValue()).toBe('wrong file')
})

it('approves the calls of a program by no key that was meant for elsewhere', async () => {
  const { me, all } = await opened('a', 'b')
  await all.and(me.page.locator('[aria-disabled=false]')).waitFor()
  await all.focus()
  await me.page.keyboard.press('Enter')
  await all.and(me.page.locator('[aria-disabled=false]')).waitFor()
  expect(now().fake.answered).toEqual([])
})

it('keeps a reason that came too late for a call that was decided elsewhere', async () => {
  const { me, card } = await opened('a', 'b')
  await card('a')
    .getByRole('button', { name: /^Reject/ })
    .and(me.page.locator('[aria-disabled=false]'))
    .click()
  await card('a').getByRole('textbox').fill('wrong file')
  const gone = { error: { code: 'unknown_approval', message: 'This call was decided elsewhere.' } }
  await me.page.route('**/api/approvals/*', (route) => route.fulfill({ status: 404, json: gone }))
  now().fake.approvals = now().fake.approvals.filter(({ id }) => id !== 'a')
  await card('a')
    .getByRole('button', { name: /^Reject/ })
    .and(me.page.locator('[aria-disabled=false]'))
    .click()
  await me.page.getByText('Your reason was not sent').waitFor()
})
