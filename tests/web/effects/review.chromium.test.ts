/** A turn that ran in a fork is reviewed like a pull request, and only what was accepted is asked for. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { PROGRAMS } from '../../../contract/own-sources.ts'
import { RUN_CODE } from '../../../contract/programs.ts'
import { PHONE } from '../../support/browser.ts'
import { pngOf } from '../../support/tiny-png.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { FakeFile } from './fake-effects.ts'

const now = useFakePage()
const FILES: FakeFile[] = [
  { path: 'a.ts', before: 'let a = 1\n', after: 'let a = 2\n' },
  { path: 'b.ts', before: 'let b = 1\n', after: 'let b = 2\n' },
  { path: 'logo.png', before: pngOf(), after: pngOf(8, 8, [40, 40, 200]) },
  { path: 'new/name.txt', from: 'name.txt', before: 'same', after: 'same' }
]

const reviewing =
  (files = FILES, reviewId = 'r') =>
  (session: FakeSession) => {
    session.append('mode:selected', { mode: 'review' })
    session.append('user:message', { turnId: 't', text: 'change it' })
    session.ask('t', [
      { callId: 'c', name: 'execute_command', args: { command: 'sed -i s/1/2/ *.ts' }, ahead: 'review' }
    ])
    session.append('tool:approval_resolved', { callId: 'c', approved: true, by: 'review' })
    session.append('tool:started', { callId: 'c' })
    const content = [{ type: 'text', text: 'four files\n[exit code 0, 3 ms]' }]
    session.append('tool:result', { callId: 'c', isError: false, content, isForked: true })
    session.append('review:opened', {
      reviewId,
      turnId: 't',
      changes: session.effects.put(`review:${reviewId}`, files)
    })
    session.append('turn:end', { turnId: 't', reason: 'done' })
  }
const dialog = (page: Page) => page.getByRole('dialog', { name: 'Review the changes' })
const list = (page: Page) => dialog(page).getByRole('listbox', { name: 'Changed files' })
const armed = (page: Page, name: string | RegExp) =>
  dialog(page).getByRole('button', { name }).and(page.locator('[aria-disabled=false]'))
const states = (page: Page) =>
  list(page)
    .getByRole('option')
    .evaluateAll((all) => all.map((each) => each.getAttribute('aria-selected')))

it('accepts some files by keyboard alone, with a comment; Escape and a reload keep the draft', async () => {
  const { me, session } = await now().arrive(reviewing())
  const { page } = me
  await expect.poll(() => page.title()).toContain('(1)')
  await page.getByText('4 files changed in the fork wait for your review.').waitFor()
  await page.keyboard.press('Alt+p')
  await list(page).and(page.locator(':focus')).waitFor()
  await dialog(page).getByText('let a = 2').waitFor()
  expect(session.effects.loaded.toSorted()).toEqual(['a.ts after', 'a.ts before'])
  await page.keyboard.press('j')
  await page.keyboard.press('Space')
  await expect.poll(() => states(page)).toEqual(['true', 'false', 'true', 'true'])
  await dialog(page).getByText('let b = 2').waitFor()
  expect(await seriousFaults(page)).toEqual([])
  await page.keyboard.press('ArrowDown')
  await expect.poll(() => dialog(page).getByRole('img', { name: 'logo.png' }).count()).toBe(2)
  await page.keyboard.press('End')
  await dialog(page).getByText('Renamed from').waitFor()
  await dialog(page)
    .getByRole('textbox', { name: /Comment/ })
    .fill('not b')
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'hidden' })
  await page.reload()
  await me.button(/^Review 4 files/).click()
  await expect.poll(() => states(page)).toEqual(['true', 'false', 'true', 'true'])
  expect(
    await dialog(page)
      .getByRole('textbox', { name: /Comment/ })
      .inputValue()
  ).toBe('not b')
  await dialog(page).getByRole('button', { name: 'Calls 1' }).click()
  await dialog(page).getByText('four files').waitFor()
  await armed(page, 'Accept 3 of 4 files').click()
  const { hash } = session.effects.sets.get('review:r') ?? {}
  await expect
    .poll(() => session.effects.decisions)
    .toEqual([{ reviewId: 'r', hash, accept: { allExcept: ['b.ts'] }, comment: 'not b' }])
  await dialog(page).waitFor({ state: 'hidden' })
  await page.getByText('You reviewed 4 files and accepted 3.').waitFor()
  await page.getByText('Not accepted: b.ts').waitFor()
  await expect.poll(() => page.title()).not.toContain('(1)')
  expect(now().offences).toEqual([])
})

it('asks which version counts where both changed, and never sends a review that has grown unseen', async () => {
  const both = { path: 'both.txt', before: 'old\n', after: 'fork\n', now: 'mine\n' }
  const { me, session } = await now().arrive(reviewing([both, ...FILES]))
  now().fake.files.set('both.txt', Buffer.from('mine\n'))
  const { page } = me
  await me.button(/^Review 5 files/).click()
  await dialog(page).getByText('Choose a version for 1 file with a conflict first.').waitFor()
  await expect.poll(() => me.read(dialog(page))).toMatch(/−\s*mine/)
  const useFork = () =>
    dialog(page)
      .getByRole('radio', { name: /Use the version of the fork/ })
      .check()
  await useFork()
  await armed(page, 'Accept all 5 files').waitFor()
  // It changes again in the workspace: the choice was for another version.
  const [conflicting] = session.effects.sets.get('review:r')?.files ?? []
  if (conflicting?.conflict) conflicting.conflict.seen = 'changed again'
  session.append('session:notice', { code: 'files_changed', message: 'You uploaded it.' })
  await dialog(page).getByText('Choose a version for 1 file with a conflict first.').waitFor()
  if (conflicting?.conflict) conflicting.conflict.seen = 'seen-both.txt'
  session.append('session:notice', { code: 'files_changed', message: 'You uploaded it.' })
  await armed(page, 'Accept all 5 files').waitFor()
  // Another turn goes on in the same fork.
  session.append('user:message', { turnId: 't2', text: 'more' })
  const files = [both, ...FILES, { path: 'more.txt', after: 'more' }]
  await dialog(page).getByText('The turn is still going on in the fork.').waitFor()
  session.append('turn:end', { turnId: 't2', reason: 'done' })
  session.append('review:opened', { reviewId: 'r', turnId: 't2', changes: session.effects.put('review:r', files) })
  await dialog(page).getByRole('alert').getByText('The fork has gone on since you looked').waitFor()
  await dialog(page).getByText('Check the changes again.').waitFor()
  const accept = dialog(page).getByRole('button', { name: 'Accept all 6 files' })
  await expect.poll(() => accept.getAttribute('aria-disabled')).toBe('true')
  await dialog(page).getByRole('button', { name: 'I see the new changes' }).click()
  await armed(page, 'Accept all 6 files').click()
  const { hash } = session.effects.sets.get('review:r') ?? {}
  await expect
    .poll(() => session.effects.decisions)
    .toEqual([
      {
        reviewId: 'r',
        hash,
        accept: 'all',
        choices: { 'both.txt': 'fork' },
        seenConflicts: { 'both.txt': 'seen-both.txt' }
      }
    ])
})

it('is usable on a phone and in the dark, rejects all, and says when there is no connection', async () => {
  const { me, session } = await now().arrive(reviewing(), { viewport: PHONE, hasTouch: true, colorScheme: 'dark' })
  const { page } = me
  await me.button(/^Review 4 files/).click()
  await list(page).getByRole('option').nth(1).click()
  await dialog(page).getByText('let b = 2').waitFor()
  await dialog(page).getByRole('checkbox', { name: 'Accept this file' }).uncheck()
  expect(await seriousFaults(page)).toEqual([])
  await dialog(page).getByRole('button', { name: 'All files' }).click()
  await expect.poll(() => states(page)).toEqual(['true', 'false', 'true', 'true'])
  expect(await seriousFaults(page)).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await dialog(page).getByRole('button', { name: 'Reject all', exact: true }).click()
  await armed(page, 'Reject all 4 files').waitFor()
  let enter = () => {}
  now().fake.gate = new Promise((resolve) => {
    enter = resolve
  })
  now().fake.breakConnections()
  await dialog(page).getByText('There is no connection, so nothing can be decided now.').waitFor()
  enter()
  await armed(page, 'Reject all 4 files').click()
  await expect.poll(() => session.effects.decisions).toMatchObject([{ accept: 'none' }])
})

it('draws a part of 2,000 files, loads what is looked at, and compares 10 MB outside the page', async () => {
  const lines = Array.from({ length: 200_000 }, (_, at) => `line ${at} ${'x'.repeat(40)}`)
  const large = {
    path: '0-large.txt',
    before: lines.join('\n'),
    after: lines.map((line, at) => (at % 2000 === 0 ? `${line}!` : line)).join('\n')
  }
  const many = Array.from({ length: 2000 }, (_, at) => ({
    path: `f/${String(at).padStart(4, '0')}.txt`,
    after: `${at}\n`
  }))
  const { me, session } = await now().arrive(reviewing([large, ...many]))
  const { page } = me
  let workers = 0
  page.on('worker', () => {
    workers += 1
  })
  await me.button(/^Review 2,001 files/).click()
  await dialog(page).getByText('+100', { exact: true }).waitFor()
  expect(workers).toBe(1)
  const more = dialog(page).getByRole('button', { name: /^Show more/ })
  const changed = dialog(page).locator('.diff-added')
  const before = await changed.count()
  expect(before).toBeLessThan(100)
  await more.click()
  await expect.poll(() => changed.count()).toBeGreaterThan(before)
  expect(await list(page).getByRole('option').count()).toBeLessThan(100)
  await list(page).focus()
  await page.keyboard.press('End')
  await list(page)
    .getByRole('option', { name: /1999\.txt/ })
    .waitFor()
  await dialog(page).getByRole('heading', { name: 'f/1999.txt' }).waitFor()
  await expect.poll(() => session.effects.loaded.length).toBe(3)
  await page.keyboard.press('Space')
  await armed(page, 'Accept 2,000 of 2,001 files').click()
  await expect.poll(() => session.effects.decisions).toMatchObject([{ reviewId: 'r' }])
})

// Seen before: the second call counted the files of the first, and both looked open after the decision. The menu said nothing.
it('counts the files of each call, says why the mode stays, and what became of the calls after the decision', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('mode:selected', { mode: 'review' })
    opened.append('user:message', { turnId: 't', text: 'change it' })
    const again: FakeFile = { path: 'a.ts', before: 'let a = 1\n', after: 'let a = 3\n' }
    const all = [again, ...FILES.slice(1, 2)]
    const steps: [string, FakeFile[], FakeFile[]][] = [
      ['first', FILES.slice(0, 2), FILES.slice(0, 2)],
      ['second', all, [{ ...again, before: 'let a = 2\n' }]]
    ]
    for (const [callId, files, part] of steps) {
      opened.effects.put(`part:${callId}`, part)
      opened.ask('t', [{ callId, name: 'execute_command', args: { command: callId }, ahead: 'review' }])
      opened.append('tool:approval_resolved', { callId, approved: true, by: 'review' })
      opened.append('tool:started', { callId })
      const changes = opened.effects.put('review:r', files)
      opened.append('tool:result', { callId, isError: false, content: [], isForked: true, changes })
    }
    const changes = opened.effects.put('review:r', all)
    opened.append('review:opened', { reviewId: 'r', turnId: 't', changes })
    opened.append('turn:end', { turnId: 't', reason: 'done' })
  })
  const { page } = me
  const calls = me.page.getByRole('region', { name: 'Messages' })
  await expect.poll(() => me.read(calls)).toMatch(/Changed 2 files\s+waits for your review/)
  await expect.poll(() => me.read(calls)).toMatch(/Changed 1 file\s+waits for your review/)
  await me.button('Changed 1 file').click()
  const shown = page.getByRole('dialog', { name: 'Changes of this call' })
  // Not the diff of the whole review, which is from 1 to 3.
  await expect.poll(() => me.read(shown.getByRole('option'))).toMatch(/^changed\s+a\.ts\b/)
  await shown.getByText('let a = 3').waitFor()
  expect(await me.read(shown)).toMatch(/let a = 2/)
  expect(await me.read(shown)).not.toMatch(/let a = 1/)
  await page.keyboard.press('Escape')
  await me.button(/^Approval mode/).click()
  await page.getByText('Changes in a fork wait for your review. Decide on them first').waitFor()
  await expect.poll(() => me.button(/^Ask Every call/).getAttribute('aria-disabled')).toBe('true')
  expect(await seriousFaults(page)).toEqual([])
  await page.keyboard.press('Escape')
  const { hash } = session.effects.sets.get('review:r') ?? { hash: '' }
  session.effects.handle(session, 'review:decide', { reviewId: 'r', hash, accept: ['b.ts'] })
  await expect.poll(() => me.read(calls)).toMatch(/Changed 2 files\s+accepted in part\s/)
  await expect.poll(() => me.read(calls)).toMatch(/Changed 1 file\s+not accepted/)
  expect(now().offences).toEqual([])
})

const forkedProgram = (session: FakeSession) => {
  const server = PROGRAMS
  session.append('user:message', { turnId: 't', text: 'change it' })
  session.ask('t', [{ callId: 'prog', server, name: RUN_CODE, args: { code: 'await tools.workspace.x({})' } }])
  session.append('tool:approval_resolved', { callId: 'prog', approved: true, by: 'policy' })
  session.append('tool:started', { callId: 'prog' })
  session.append('tool:approval_required', {
    ...{ callId: 'in', turnId: 't', server: 'workspace', name: 'execute_command', definition: 'fake', hash: 'h' },
    ...{ args: { command: 'touch a.ts' }, queuePosition: 1, totalInQueue: 1, ahead: 'review' },
    program: { callId: 'prog', n: 1, line: 1, source: '', sources: [] }
  })
  session.append('tool:approval_resolved', { callId: 'in', approved: true, by: 'review' })
  session.append('tool:started', { callId: 'in' })
  const changes = session.effects.put('review:r', FILES)
  session.effects.put('part:in', FILES.slice(1, 2))
  const content = [{ type: 'text', text: 'from inside\n[exit code 0, 3 ms]' }]
  session.append('tool:result', { callId: 'in', isError: false, content, isForked: true, changes })
  session.append('tool:result', { callId: 'prog', isError: false, content: [{ type: 'text', text: 'over' }] })
  session.append('review:opened', { reviewId: 'r', turnId: 't', changes })
  session.append('turn:end', { turnId: 't', reason: 'done' })
}

it('shows the programs that ran in the fork, with their calls and the outputs of these', async () => {
  const { me } = await now().arrive(forkedProgram)
  const { page } = me
  await me.button(/^Review 4 files/).click()
  await dialog(page).getByRole('button', { name: 'Calls 1' }).click()
  const calls = dialog(page).getByRole('list', { name: 'Calls of the program' })
  await calls.getByText('waits for your review').waitFor()
  await calls.getByRole('button', { name: /touch a\.ts/ }).click()
  await calls.getByText('from inside').waitFor()
})

// A call of a program has no entry of its own in the conversation.
it('undoes one call of a program, and offers that once', async () => {
  const { me, session } = await now().arrive(forkedProgram)
  const { page } = me
  const { hash } = session.effects.sets.get('review:r') ?? { hash: '' }
  session.effects.handle(session, 'review:decide', { reviewId: 'r', hash, accept: 'all' })
  const calls = page.getByRole('list', { name: 'Calls of the program' })
  await calls.getByRole('button', { name: 'Actions for this call' }).click()
  expect(await calls.getByRole('button', { name: /Rewind|Branch/ }).count()).toBe(0)
  await me.button('Undo this change…').click()
  const plan = page.getByRole('dialog', { name: 'Undo this change' })
  await plan.getByRole('option', { name: /b\.ts/ }).waitFor()
  expect(await plan.getByRole('option').count()).toBe(1)
  await page.keyboard.press('Escape')
  const changes = session.effects.put('revert:1', FILES.slice(1, 2))
  session.append('files:reverted', { of: 'part:in', scope: 'one', changes: { ...changes, total: 4 }, by: 'human' })
  await calls.getByText('accepted, then undone').waitFor()
  expect(await calls.getByRole('button', { name: 'Actions for this call' }).count()).toBe(0)
})
