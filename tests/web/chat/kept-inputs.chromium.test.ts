/** A card may go while a person types into it. What they typed stays on the page, and nothing of it becomes a message to the model. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { inboxCard } from '../inbox-card.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()

function asking(session: FakeSession): void {
  session.append('user:message', { turnId: 't', text: 'go' })
  session.ask('t', [{ callId: 'a', name: 'execute_command', args: { command: 'make' } }])
}
const FORM = {
  ...{ callId: 'a', id: 'q1', message: 'Which one?', expiresAt: Date.now() + 600_000 },
  fields: [{ name: 'name', kind: 'text' as const, title: 'Its name', isRequired: true }]
}
function questioned(session: FakeSession): void {
  session.append('user:message', { turnId: 't', text: 'order' })
  session.ask('t', [{ callId: 'a', server: 'shop', name: 'order', args: {} }])
  session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
  session.append('tool:started', { callId: 'a' })
  session.append('tool:question', FORM)
}
function reviewed(session: FakeSession): void {
  session.append('user:message', { turnId: 't', text: 'go' })
  session.append('turn:end', { turnId: 't', reason: 'done' })
  const changes = session.effects.put('review:r', [{ path: 'a.txt', after: 'a' }])
  session.append('review:opened', { reviewId: 'r', turnId: 't', changes })
}
const decided = (session: FakeSession) =>
  session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
const stopped = (session: FakeSession) => {
  session.append('tool:approval_resolved', { callId: 'a', approved: false, by: 'cancel' })
  session.append('turn:end', { turnId: 't', reason: 'cancelled' })
}
const openReject = async (me: WorkspacePage) => {
  await me.cards.locator('[aria-disabled=false]').first().waitFor()
  await me.button(/^Reject/).click()
  return me.page.getByRole('textbox', { name: /Reason/ })
}
const openEdit = async (me: WorkspacePage) => {
  await me.cards.locator('[aria-disabled=false]').first().waitFor()
  await me.button(/^Edit, then/).click()
  return me.page.getByRole('textbox', { name: 'command' })
}
const openForm = async (me: WorkspacePage) => me.page.getByLabel('Its name')
const openComment = async (me: WorkspacePage) => {
  await me
    .button(/^Review/)
    .first()
    .click()
  return me.page.getByRole('textbox', { name: /^Comment/ })
}

// Checked: before, the rest of the text went into the message field, and Enter sent it to the model.
it.each([
  ['a reason, and the call is decided elsewhere', asking, openReject, decided, 'Your reason was not sent'],
  ['a reason, and the turn is stopped', asking, openReject, stopped, 'Your reason was not sent'],
  ['an edit, and the call is decided elsewhere', asking, openEdit, decided, 'Your edit was not used'],
  [
    ...(['an answer, and the question is answered elsewhere', questioned, openForm] as const),
    (session: FakeSession) =>
      session.append('tool:question_answered', { callId: 'a', id: 'q1', action: 'decline', by: 'human' }),
    'Your answer was not sent'
  ],
  [
    ...(['a comment, and the review is decided elsewhere', reviewed, openComment] as const),
    (session: FakeSession) => {
      const hash = session.transcript.review?.changes.hash ?? ''
      session.append('review:resolved', { reviewId: 'r', hash, accept: 'all', by: 'human' })
    },
    'Your comment was not sent'
  ]
])('someone types %s', async (_, prepare, open, end, about) => {
  const { me, session } = await now().arrive(prepare)
  const before = session.transcript.entries.filter(({ kind }) => kind === 'user').length
  const field = await open(me)
  await field.fill('')
  await field.pressSequentially('not this')
  end(session)
  const kept = me.page.getByRole('textbox', { name: about })
  await kept.and(me.page.locator(':focus')).waitFor()
  await me.page.keyboard.type(' one')
  await me.page.keyboard.press('Enter')
  await expect.poll(() => kept.inputValue()).toBe('not this one\n')
  expect(await me.composer.inputValue()).toBe('')
  expect(session.transcript.entries.filter(({ kind }) => kind === 'user')).toHaveLength(before)
  expect(await seriousFaults(me.page)).toEqual([])
  await me.page.reload()
  await expect.poll(() => kept.inputValue()).toBe('not this one\n')
  await me.button('Put it into the message').click()
  await expect.poll(() => me.composer.inputValue()).toContain('not this one')
  expect(await kept.count()).toBe(0)
  expect(now().offences).toEqual([])
})

it('keeps a reason in the inbox through a reload, and when its card goes', async () => {
  now().fake.approvals = [inboxCard('one')]
  const { me } = await now().arrive()
  const open = async () => {
    await me
      .button(/^(Inbox|Waiting)/)
      .first()
      .click()
    await me.page.locator('.inbox-card').waitFor()
  }
  await open()
  await me.page.locator('.inbox-card [aria-disabled=false]').first().waitFor()
  await me.button(/^Reject/).click()
  const reason = me.page.getByRole('textbox', { name: /Reason/ })
  await reason.fill('not that server')
  await me.page.reload()
  await open()
  await expect.poll(() => reason.inputValue()).toBe('not that server')
  // Seen before: Escape closed the form and the dialog around it.
  await reason.press('Escape')
  await reason.waitFor({ state: 'hidden' })
  await me.page.locator('.inbox-card [aria-disabled=false]').first().waitFor()
  await me.button(/^Reject/).click()
  await expect.poll(() => reason.inputValue()).toBe('not that server')
  now().fake.approvals = []
  now().fake.tellInbox()
  await reason.waitFor({ state: 'hidden' })
  await me.page.keyboard.press('Escape')
  const kept = me.page.getByRole('textbox', { name: 'Your reason was not sent' })
  await expect.poll(() => kept.inputValue()).toBe('not that server')
})
