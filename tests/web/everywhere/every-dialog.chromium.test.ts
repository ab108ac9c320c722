/** Checks the cards, menus and dialogs of the chat, of the files and of the list of sessions, as everywhere.chromium.test.ts does. */

import { expect, it } from 'vitest'
import { PROGRAMS } from '../../../contract/own-sources.ts'
import { pngOf } from '../../support/tiny-png.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import type { WorkspacePage } from '../workspace-page.ts'
import { check, NORMAL } from './for-everyone.ts'

const now = useFakePage()

async function arrive(prepare: (session: FakeSession) => void) {
  const { me, session } = await now().arrive(prepare, { viewport: NORMAL })
  const devtools = await me.page.context().newCDPSession(me.page)
  /** Opens something, checks it and closes it again. */
  const look = async (view: string, open: () => Promise<void>) => {
    await open()
    await check(me, devtools, view)
    await me.page.keyboard.press('Escape')
    await me.page.getByRole('dialog').waitFor({ state: 'hidden' })
  }
  return { me, session, look, see: (view: string) => check(me, devtools, view) }
}
const shown = (me: WorkspacePage, name: string | RegExp) => me.page.getByRole('dialog', { name }).waitFor()

function ran(session: FakeSession): void {
  session.append('user:message', { turnId: 't', text: 'Make it.' })
  session.append('agent:response', { turnId: 't', text: 'I make it.', reasoning: 'How?', reasoningMs: 1200 })
  session.ask('t', [{ callId: 'c', name: 'execute_command', args: { command: 'make a.txt' } }])
  session.append('tool:approval_resolved', { callId: 'c', approved: true, by: 'human' })
  session.append('tool:started', { callId: 'c' })
  const changes = session.effects.put('call:c', [{ path: 'a.txt', after: 'one\n' }], { by: 'call', callId: 'c' })
  const ending = { exitCode: 1, signal: null, timedOut: false, durationMs: 1200 }
  const content = [{ type: 'text', text: 'made it\n[stderr]\nwarning\n[exit code 1, 1200 ms]' }]
  session.append('tool:result', { callId: 'c', isError: true, content, ending, changes })
  session.append('agent:response', { turnId: 't', text: 'Half of an ans', partial: 'failed' })
  session.append('usage', { turnId: 't', inputTokens: 95_000, outputTokens: 20 })
  session.append('agent:error', { turnId: 't', code: 'model_overloaded', message: 'The model is overloaded.' })
  session.append('turn:end', { turnId: 't', reason: 'error' })
}

it('has no fault for anyone: a conversation, its menus, and what can be done with its parts', async () => {
  now().fake.files.set('a.txt', Buffer.from('one\n'))
  const { me, look, see } = await arrive(ran)
  const { page } = me
  await me.button('Retry').waitFor()
  await me.button(/^Thought/).click()
  await see('a failed turn')
  await look('the timeline of a call', async () => {
    await me.button('Timeline of this call').click()
    await shown(me, /./)
  })
  for (const [item, name] of [
    ['Edit…', /Edit/],
    ['Rewind to here…', 'Rewind to here'],
    ['Branch before this message…', /Branch/]
  ] as const)
    await look(item, async () => {
      await me.button('Actions for this message').click()
      await me.button(item).click()
      await shown(me, name)
    })
  await look('the undoing of a change', async () => {
    await me.button('Actions for this call').click()
    await me.button('Undo this change…').click()
    await shown(me, 'Undo this change')
  })
  await look('the choice of a model', async () => {
    await me.button(/^Choose a model/).click()
    await me.button('Refresh models').waitFor()
  })
  await look('the switch of a model', async () => {
    await me.button(/^Choose a model/).click()
    await me.button('Large').click()
    await shown(me, 'Switch the model?')
  })
  await look('the settings', async () => {
    await me.button('Settings').click()
    await me.button('Keyboard shortcuts').waitFor()
  })
  for (const [item, name] of [
    ['Keyboard shortcuts', 'Keyboard shortcuts'],
    ['Start a fresh history', 'Start a fresh history?']
  ] as const)
    await look(item, async () => {
      await me.button('Settings').click()
      await me.button(item).click()
      await shown(me, name)
    })
  await look('the approval modes', async () => {
    await me.button(/^Approval mode/).click()
    await me.button(/^Preview/).waitFor()
  })
  await page.getByLabel('Files to attach').setInputFiles([{ name: 'red.png', mimeType: 'image/png', buffer: pngOf() }])
  await expect.poll(() => me.button('Send').isEnabled()).toBe(true)
  await see('an attached file')
})

it('has no fault for anyone: cards, forms and questions', async () => {
  const { me, session, look, see } = await arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    const call = (callId: string) => ({ callId, name: 'execute_command', args: { command: `echo ${callId}` } })
    opened.ask('t', [call('edited'), call('rejected'), call('other')])
  })
  const { page } = me
  const card = (callId: string) => page.locator(`[data-call="${callId}"]`)
  await card('edited').getByRole('button', { name: /^Edit/ }).click()
  await card('edited').locator('textarea').fill('echo changed')
  await card('rejected')
    .getByRole('button', { name: /^Reject/ })
    .click()
  await see('an edit and a reason')
  await look('the question about an edit', async () => {
    await card('edited').locator('textarea').press('Escape')
    await shown(me, 'Discard your changes?')
  })
  await look('the list of calls to approve', async () => {
    await me
      .button(/^Always allow/)
      .last()
      .click()
    await shown(me, /^Always allow/)
  })
  await page.getByRole('region', { name: 'Messages' }).focus()
  await look('the question about stopping', async () => {
    await page.keyboard.press('Escape')
    await shown(me, 'Stop this turn?')
  })
  session.append('turn:end', { turnId: 't', reason: 'cancelled' })
  await page.getByRole('list', { name: 'Texts that were not sent' }).waitFor()
  await see('texts that were not sent')

  session.append('user:message', { turnId: 'u', text: 'order' })
  session.ask('u', [{ callId: 'q', server: 'shop', name: 'order', args: {} }])
  session.append('tool:approval_resolved', { callId: 'q', approved: true, by: 'human' })
  session.append('tool:started', { callId: 'q' })
  session.append('tool:question', {
    ...{ callId: 'q', id: 'q1', message: 'Which one?', expiresAt: Date.now() + 600_000 },
    fields: [
      { name: 'name', kind: 'text', title: 'Its name', isRequired: true },
      { name: 'fresh', kind: 'boolean', title: 'Only fresh ones', isRequired: false }
    ]
  })
  session.live('tool:progress', { callId: 'q', progress: 1, total: 4, message: 'Looking' })
  await page.getByLabel('Its name').waitFor()
  await see('a question of a server')
})

it('has no fault for anyone: previews, reviews and programs', async () => {
  const files = [
    { path: 'a.ts', before: 'let a = 1\n', after: 'let a = 2\n', now: 'let a = 3\n' },
    { path: 'b.ts', after: 'new\n' }
  ]
  const { me, session, look, see } = await arrive((opened) => {
    opened.append('mode:selected', { mode: 'preview' })
    opened.append('user:message', { turnId: 't', text: 'go' })
    opened.ask('t', [{ callId: 'p', name: 'execute_command', args: { command: 'make' }, ahead: 'preview' }])
    const changes = opened.effects.put('preview:p', files)
    const result = { isError: false, content: [{ type: 'text', text: 'built\n[exit code 0, 3 ms]' }] }
    opened.append('tool:previewed', { callId: 'p', changes, hash: `preview ${changes.hash}`, result })
  })
  const { page } = me
  await page.getByRole('region', { name: 'Preview: keep or discard?' }).waitFor()
  await see('a preview')
  session.append('tool:approval_resolved', { callId: 'p', approved: false, by: 'human' })
  session.append('turn:end', { turnId: 't', reason: 'done' })
  const changes = session.effects.put('review:r', files)
  session.append('review:opened', { reviewId: 'r', turnId: 't', changes })
  await look('a review', async () => {
    await me.button(/^Review 2 files/).click()
    await shown(me, 'Review the changes')
    await page.getByRole('dialog').getByRole('option').first().waitFor()
  })
  session.append('review:resolved', { reviewId: 'r', hash: changes.hash, accept: 'none', by: 'human' })
  session.append('review:applied', { reviewId: 'r', rejected: ['a.ts', 'b.ts'], rejectedTotal: 2 })

  session.append('user:message', { turnId: 'u', text: 'go' })
  const code = 'const { ids } = await tools.crm.list()\nawait tools.crm.read({ id: ids[0] })'
  const waits = { definition: 'fake', queuePosition: 1, totalInQueue: 1, turnId: 'u' }
  const run = { callId: 'prog', server: PROGRAMS, name: 'run_code', args: { code }, hash: 'h' }
  session.append('tool:approval_required', { ...waits, ...run })
  await me.cards.first().waitFor()
  await see('the card of a program')
  session.append('tool:approval_resolved', { callId: 'prog', approved: true, by: 'human' })
  session.append('tool:started', { callId: 'prog' })
  const sources = [{ path: 'id', server: 'crm', tool: 'list', n: 1 }]
  const program = {
    callId: 'prog',
    n: 2,
    line: 2,
    source: 'await tools.crm.read({ id: ids[0] })',
    isRead: true as const,
    sources
  }
  const inner = { callId: 'inner', server: 'crm', name: 'read', args: { id: '7' }, hash: 'i', program }
  session.append('tool:approval_required', { ...waits, ...inner })
  await page.locator('[data-call="inner"] [data-approve]').waitFor()
  await see('a program with a call that waits')
})

it('has no fault for anyone: files and sessions', async () => {
  const { fake } = now()
  fake.files.set('a.txt', Buffer.from('one\n'))
  fake.files.set('data.csv', Buffer.from('name,amount\na,1\n'))
  const { me, look, see } = await arrive(ran)
  const { page } = me
  await me.button('Show the files').click()
  await look('a table', async () => {
    await me.button(/^data\.csv/).click()
    await shown(me, /./)
  })
  await look('a text that is edited', async () => {
    await me.button(/^a\.txt/).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Edit', exact: true }).click()
    await page.getByRole('textbox', { name: /^Content of/ }).waitFor()
  })
  for (const item of ['History', 'Rename or move', 'Delete'])
    await look(`a file: ${item}`, async () => {
      await me.button('More for a.txt').click()
      await page.getByRole('group', { name: 'More for a.txt' }).getByRole('button', { name: item }).click()
      await shown(me, /./)
    })
  await me.button('History of the files').click()
  await page.getByRole('list', { name: 'Versions of the workspace' }).getByRole('listitem').first().waitFor()
  await see('the history of the files')
  await look('the changes of a version', async () => {
    await page.getByRole('list', { name: 'Versions of the workspace' }).getByRole('button').first().click()
    await shown(me, 'Changes of this version')
  })
  await me.button('Close the files').click()
  const list = page.getByRole('navigation', { name: 'Sessions' })
  await list.getByRole('searchbox').fill('make')
  await page.getByRole('list', { name: 'Search results' }).getByRole('button').first().waitFor()
  await see('the results of a search')
  await list.getByRole('searchbox').fill('')
  await look('the menu of a session', async () => {
    await me.button('More for Make it.').click()
    await me.button(/^Pin$/).waitFor()
  })
  await look('the question about deleting a session', async () => {
    await me.button('More for Make it.').click()
    await me.button(/^Delete$/).click()
    await shown(me, 'Delete this session?')
  })
  await list.getByRole('button', { name: 'Archived' }).click()
  await list.getByText('You have no archived sessions.').waitFor()
  await see('the archive')
})
