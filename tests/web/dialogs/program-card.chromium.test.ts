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
