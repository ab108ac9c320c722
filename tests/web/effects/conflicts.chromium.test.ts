/** A person must not overlook conflicts in a review, files that can be run, or the fact that its changes were undone later. */
import { expect, it } from 'vitest'
import { PHONE } from '../../support/browser.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { FakeFile } from './fake-effects.ts'

const now = useFakePage()
const lines = (count: number, word: string) => Array.from({ length: count }, (_, at) => `${word} ${at}\n`).join('')
const FILES: FakeFile[] = [
  { path: 'a.txt', after: 'a\n' },
  { path: 'both.md', after: lines(300, 'fork'), now: 'mine\n' },
  { path: 'run.sh', after: 'echo hi\n', mode: 0o755 }
]
function reviewing(session: FakeSession): void {
  opened(session, FILES)
}
function opened(session: FakeSession, files: FakeFile[]): void {
  session.append('mode:selected', { mode: 'review' })
  session.append('user:message', { turnId: 't', text: 'change it' })
  session.ask('t', [{ callId: 'c', name: 'execute_command', args: { command: 'make' }, ahead: 'review' }])
  session.append('tool:approval_resolved', { callId: 'c', approved: true, by: 'review' })
  session.append('tool:started', { callId: 'c' })
  const changes = session.effects.put('review:r', files)
  session.append('tool:result', { callId: 'c', isError: false, content: [], isForked: true, changes })
  session.append('review:opened', { reviewId: 'r', turnId: 't', changes })
  session.append('turn:end', { turnId: 't', reason: 'done' })
}

// Seen before: the choice was 6,000 px below, under the whole diff, and nothing led to the file.
it.each([
  ['a desktop', { width: 1440, height: 900 }],
  ['a phone', PHONE]
])('leads to the file with a conflict, and asks above its diff: %s', async (_, viewport) => {
  const { me } = await now().arrive(reviewing, { viewport })
  now().fake.files.set('both.md', Buffer.from('mine\n'))
  await me.button(/^Review 3 files/).click()
  const dialog = me.page.getByRole('dialog', { name: 'Review the changes' })
  await dialog.getByText('Choose a version for 1 file with a conflict first.').waitFor()
  await dialog.getByRole('button', { name: 'Show the file' }).click()
  const choice = dialog.getByRole('radio', { name: /Use the version of the fork/ })
  await choice.waitFor()
  await dialog.getByRole('group', { name: 'Changes to both.md' }).waitFor()
  await dialog.getByRole('group', { name: 'Both versions of both.md' }).waitFor()
  const box = await choice.boundingBox()
  expect(box?.y).toBeLessThan(viewport.height * 0.6)
  expect(await dialog.getByText('new in the fork').count()).toBeGreaterThan(0)
  expect(await seriousFaults(me.page)).toEqual([])
})

it('does not count a file as accepted whose version in the workspace is kept', async () => {
  const { me, session } = await now().arrive(reviewing)
  now().fake.files.set('both.md', Buffer.from('mine\n'))
  await me.button(/^Review 3 files/).click()
  const dialog = me.page.getByRole('dialog', { name: 'Review the changes' })
  const row = dialog.getByRole('option', { name: /both\.md/ })
  await row.getByText('conflict', { exact: true }).waitFor()
  await row.click()
  const keep = dialog.getByRole('radio', { name: /Keep the version of the workspace/ })
  await keep.check()
  await dialog.getByRole('button', { name: 'Accept 2 of 3 files' }).waitFor()
  await row.getByText('settled').waitFor()
  await expect.poll(() => row.getAttribute('aria-selected')).toBe('false')
  const box = dialog.getByRole('checkbox', { name: 'Accept this file' })
  expect(await box.isChecked()).toBe(false)
  expect(await seriousFaults(me.page)).toEqual([])
  await box.check()
  await dialog.getByText('Choose a version for 1 file with a conflict first.').waitFor()
  expect(await keep.isChecked()).toBe(false)
  await dialog.getByRole('radio', { name: /Use the version of the fork/ }).check()
  await row.getByText('settled').waitFor()
  await expect.poll(() => row.getAttribute('aria-selected')).toBe('true')
  await keep.check()
  await dialog
    .getByRole('button', { name: 'Accept 2 of 3 files' })
    .and(me.page.locator('[aria-disabled=false]'))
    .click()
  await expect.poll(() => session.effects.decisions).toMatchObject([{ choices: { 'both.md': 'workspace' } }])
  await me.page.getByText('You reviewed 3 files and accepted 2.').waitFor()
  await me.page.getByText('Not accepted: both.md').waitFor()
})

// Seen before: only the pane of the file said it.
it('says in the list which files can be run', async () => {
  const { me } = await now().arrive(reviewing)
  await me.button(/^Review 3 files/).click()
  await me.page
    .getByRole('option', { name: /run\.sh/ })
    .getByText('executable')
    .waitFor()
})

// Seen before: the review and its calls still said "accepted" after the files were put back.
it('crosses out a review whose changes were undone', async () => {
  const { me, session } = await now().arrive(reviewing)
  const { hash } = session.transcript.review?.changes ?? { hash: '' }
  const changes = session.effects.put('review:r', FILES)
  session.append('review:resolved', { reviewId: 'r', hash, accept: 'all', by: 'human' })
  session.append('review:applied', { reviewId: 'r', changes, rejected: [], rejectedTotal: 0 })
  await me.page.getByText('accepted', { exact: true }).waitFor()
  session.append('files:reverted', { of: 'review:r', scope: 'since', changes, by: 'human' })
  await me.page.getByText('You undid these changes.').waitFor()
  await me.page.getByText('accepted, then undone').waitFor()
  await me.page.locator('del', { hasText: 'You reviewed 3 files and accepted all.' }).waitFor()
})

it('says in the files panel and in the list of sessions that changes wait in a fork', async () => {
  const { me, session } = await now().arrive(reviewing)
  now().fake.tell(session.id)
  await me.button('Show the files').click()
  await me.page.getByText('3 changed files wait in the fork for your review.').waitFor()
  const sidebar = me.page.getByRole('navigation', { name: 'Sessions' })
  await sidebar.getByRole('button', { name: /change it review/ }).waitFor()
})

it('compares both versions of a renamed file that has changed at its old path', async () => {
  const renamed = {
    path: 'new.txt',
    from: 'old.txt',
    before: 'one\n',
    after: 'one\n',
    now: 'one and mine\n',
    at: 'old.txt'
  }
  const { me } = await now().arrive((session) => opened(session, [renamed]))
  now().fake.files.set('old.txt', Buffer.from('one and mine\n'))
  await me.button(/^Review 1 file/).click()
  const both = me.page.getByRole('group', { name: 'Both versions of new.txt' })
  await both.getByText('one and mine').waitFor()
})
