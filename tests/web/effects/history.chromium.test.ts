/** The versions of the workspace: looked at, compared, downloaded and undone, after the page has shown what that would do. */
import { expect, it } from 'vitest'
import { PHONE } from '../../support/browser.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()

function withVersions(session: FakeSession): void {
  session.append('user:message', { turnId: 't', text: 'go' })
  session.ask('t', [{ callId: 'c', name: 'execute_command', args: { command: 'make a.txt' } }])
  session.append('tool:approval_resolved', { callId: 'c', approved: true, by: 'human' })
  const first = session.effects.put('call:c', [{ path: 'a.txt', after: 'one\n' }], { by: 'call', callId: 'c' })
  session.append('tool:result', { callId: 'c', isError: false, content: [], changes: first })
  session.append('turn:end', { turnId: 't', reason: 'done' })
  session.effects.put('person:1', [{ path: 'a.txt', before: 'one\n', after: 'two\n' }], { by: 'person' })
  const both = [
    { path: 'a.txt', before: 'two\n', after: 'three\n', now: 'four\n' },
    { path: 'b.txt', after: 'b\n' }
  ]
  session.effects.put('review:r', both, { by: 'review', reviewId: 'r' })
  session.effects.isThinned = true
}
async function openHistory(me: WorkspacePage): Promise<void> {
  await me.button('Show the files').click()
  await me.button('History of the files').click()
}
const versions = ({ page }: WorkspacePage) =>
  page.getByRole('list', { name: 'Versions of the workspace' }).getByRole('listitem')

it('lists who changed what, shows each version, and undoes one after showing the plan and its conflicts', async () => {
  now().fake.files.set('a.txt', Buffer.from('four\n'))
  const { me, session } = await now().arrive(withVersions)
  await openHistory(me)
  await expect.poll(() => versions(me).count()).toBe(3)
  await expect
    .poll(() => me.read(versions(me)))
    .toMatch(/You accepted a review[\s\S]*You changed files[\s\S]*Run make a\.txt/)
  await me.page.getByText('Older versions were removed to save space.').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  await versions(me)
    .nth(1)
    .getByRole('button', { name: /You changed files/ })
    .click()
  await expect.poll(() => me.read(me.page.getByRole('dialog'))).toMatch(/−\s*one\s*1\s*\+\s*two/)
  await me.page.keyboard.press('Escape')
  await versions(me).first().getByRole('button', { name: 'More for this version' }).click()
  await me.button('Undo this change').click()
  const plan = me.page.getByRole('dialog', { name: 'Undo this change' })
  await plan.getByText('1 file has changed since then').waitFor()
  await expect.poll(() => me.read(plan)).toMatch(/−\s*four\s*1\s*\+\s*two/)
  expect(await seriousFaults(me.page)).toEqual([])
  await plan.getByRole('radio', { name: 'Revert it all the same' }).check()
  await plan.getByRole('button', { name: 'Revert 2 files' }).and(me.page.locator('[aria-disabled=false]')).click()
  const { hash } = session.effects.sets.get('review:r') ?? {}
  await expect
    .poll(() => session.effects.decisions)
    .toEqual([{ changeId: 'review:r', scope: 'one', hash: `plan ${hash}`, choices: { 'a.txt': 'fork' } }])
  await plan.waitFor({ state: 'hidden' })
  await expect.poll(() => me.read(versions(me).first())).toContain('You undid a change')
  expect(now().offences).toEqual([])
})

it('compares any two versions of a file, and goes back to before one without the files that are left out', async () => {
  now().fake.files.set('a.txt', Buffer.from('four\n'))
  const { me, session } = await now().arrive(withVersions)
  await me.button('Show the files').click()
  await me.button('More for a.txt').click()
  await me.button('History').last().click()
  const dialog = me.page.getByRole('dialog', { name: 'History of a.txt' })
  await expect.poll(() => me.read(dialog)).toMatch(/−\s*two\s*1\s*\+\s*three/)
  await dialog.getByRole('combobox', { name: 'Compare' }).selectOption({ index: 3 })
  await expect.poll(() => me.read(dialog)).toMatch(/−\s*one\s*1\s*\+\s*three/)
  const downloaded = me.page.waitForEvent('download')
  await dialog.getByRole('button', { name: 'Download this version' }).first().click()
  expect((await downloaded).suggestedFilename()).toBe('a.txt')
  expect(await seriousFaults(me.page)).toEqual([])
  await me.page.keyboard.press('Escape')
  await me.button('History of the files').click()
  await versions(me).first().getByRole('button', { name: 'More for this version' }).click()
  await me.button('Go back to before this').click()
  const plan = me.page.getByRole('dialog', { name: 'Go back to before this change' })
  await plan.getByRole('listbox').focus()
  await me.page.keyboard.press('Space')
  await plan.getByRole('button', { name: 'Revert 1 file' }).and(me.page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => session.effects.decisions).toMatchObject([{ scope: 'since', paths: ['b.txt'] }])
})

it('shows hidden characters in the name of a file and of a command, also where only plain text fits', async () => {
  const path = 'a\u202etxt.sh'
  now().fake.files.set(path, Buffer.from('one\n'))
  const { me } = await now().arrive((session) => {
    session.append('user:message', { turnId: 't', text: 'go' })
    session.ask('t', [{ callId: 'c', name: 'execute_command', args: { command: `make ${path}` } }])
    session.append('tool:approval_resolved', { callId: 'c', approved: true, by: 'human' })
    const changes = session.effects.put('call:c', [{ path, after: 'one\n' }], { by: 'call', callId: 'c' })
    session.append('tool:result', { callId: 'c', isError: false, content: [], changes })
    session.append('turn:end', { turnId: 't', reason: 'done' })
  })
  await me.button('Show the files').click()
  await me.button(/^More for a/).click()
  await me.button('History').last().click()
  const dialog = me.page.getByRole('dialog', { name: 'History of a⟨U+202E⟩txt.sh' })
  await expect.poll(() => dialog.getByRole('heading').first().textContent()).toBe('History of a⟨U+202E⟩txt.sh')
  const hidden = async () => (await dialog.getByRole('option').allTextContents()).join('').includes('\u202e')
  await expect.poll(() => dialog.getByRole('option').count()).toBeGreaterThan(1)
  expect(await hidden()).toBe(false)
})

// Seen before: on a phone the button that closes the panel was outside of the window, and “Refresh” loaded the files.
it('has all its buttons in a phone’s window, and loads the history again', async () => {
  const { me, session } = await now().arrive(withVersions, { viewport: PHONE, hasTouch: true, colorScheme: 'dark' })
  await openHistory(me)
  await expect.poll(() => versions(me).count()).toBe(3)
  const { x = 0, width = 0 } = (await me.button('Close the files').boundingBox()) ?? {}
  expect(x + width).toBeLessThanOrEqual(PHONE.width)
  session.effects.put('person:2', [{ path: 'c.txt', after: '' }], { by: 'person' })
  await me.button('Refresh the history').click()
  await expect.poll(() => versions(me).count()).toBe(4)
  await versions(me)
    .first()
    .getByRole('button', { name: /You changed files/ })
    .click()
  await me.page.getByRole('dialog').getByRole('option').click()
  await me.page.getByText('The file is empty.').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
})

it('follows a file through all its versions, page by page, also under its earlier name', async () => {
  const { me } = await now().arrive((session) => {
    const by = { by: 'person' } as const
    session.effects.pageVersions = 2
    session.effects.put('person:1', [{ path: 'a.txt', after: 'one\n' }], by)
    session.effects.put('person:2', [{ path: 'a.txt', before: 'one\n', after: 'two\n' }], by)
    session.effects.put('person:3', [{ path: 'b.txt', from: 'a.txt', before: 'two\n', after: 'two\n' }], by)
    session.effects.put('person:4', [{ path: 'b.txt', before: 'two\n', after: 'three\n' }], by)
  })
  now().fake.files.set('b.txt', Buffer.from('three\n'))
  await me.button('Show the files').click()
  await me.button('More for b.txt').click()
  await me.button('History').last().click()
  const dialog = me.page.getByRole('dialog', { name: 'History of b.txt' })
  const choices = dialog.getByRole('combobox', { name: 'Compare' }).getByRole('option')
  await expect.poll(() => choices.count()).toBe(3)
  await dialog.getByRole('button', { name: 'Load older versions' }).click()
  await expect.poll(() => choices.count()).toBe(5)
  await dialog.getByRole('combobox', { name: 'Compare' }).selectOption({ index: 4 })
  await expect.poll(() => me.read(dialog)).toMatch(/−\s*one\s*1\s*\+\s*three/)
  expect(await dialog.getByRole('button', { name: 'Load older versions' }).count()).toBe(0)
})
