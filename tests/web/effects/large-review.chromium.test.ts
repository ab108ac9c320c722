/** A review of very many files, and of files deep in folders. */
import { expect, it } from 'vitest'
import { PHONE } from '../../support/browser.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { FakeFile } from './fake-effects.ts'

const now = useFakePage()
const reviewing = (files: FakeFile[]) => (session: FakeSession) => {
  session.append('user:message', { turnId: 't', text: 'change it' })
  session.append('turn:end', { turnId: 't', reason: 'done' })
  session.append('review:opened', { reviewId: 'r', turnId: 't', changes: session.effects.put('review:r', files) })
}

// Seen before: in 2,000 files there was no way to find one but to scroll.
it('filters 2,000 files by their path, and rejects only those that are shown', async () => {
  const files = Array.from({ length: 2000 }, (_, at) => ({ path: `src/part${at % 50}/file${at}.ts`, after: 'x' }))
  const { me, session } = await now().arrive(reviewing([...files, { path: 'secret/.env', after: 'KEY=1' }]))
  const { page } = me
  await me.button(/^Review 2,001 files/).click()
  const dialog = page.getByRole('dialog', { name: 'Review the changes' })
  const filter = dialog.getByRole('searchbox', { name: 'Filter the files by path' })
  const options = dialog.getByRole('listbox', { name: 'Changed files' }).getByRole('option')
  await filter.fill('.ENV')
  await dialog.getByText('1 of 2,001').waitFor()
  await expect.poll(() => options.count()).toBe(1)
  await dialog.getByText('KEY=1').waitFor()
  expect(await seriousFaults(page)).toEqual([])
  await dialog.getByRole('button', { name: 'Reject these' }).click()
  await filter.press('Escape')
  await expect.poll(() => filter.inputValue()).toBe('')
  await expect.poll(() => options.count()).toBeGreaterThan(10)
  await dialog
    .getByRole('button', { name: 'Accept 2,000 of 2,001 files' })
    .and(page.locator('[aria-disabled=false]'))
    .click()
  await dialog.waitFor({ state: 'hidden' })
  expect(session.effects.decisions).toMatchObject([{ accept: { allExcept: ['secret/.env'] } }])
  expect(now().offences).toEqual([])
})

// Seen before: on a phone, a long path ended in “…”, and every file looked the same.
it('shows the names of files with long paths on a phone', async () => {
  const folder = 'packages/a-package-with-a-long-name/src/components/shared/very/deep'
  const files = ['first.ts', 'second.ts'].map((name) => ({ path: `${folder}/${name}`, after: 'x' }))
  const { me } = await now().arrive(reviewing(files), { viewport: PHONE, hasTouch: true, isMobile: true })
  await me.button(/^Review 2 files/).tap()
  const names = me.page.getByRole('option').getByText(/^(first|second)\.ts$/)
  await expect.poll(() => names.count()).toBe(2)
  const seen = `[...document.querySelectorAll('[role=option]')].map((row) => {
    const name = [...row.querySelectorAll('.truncate')].at(-1)
    const { right, width } = name.getBoundingClientRect()
    return name.scrollWidth <= name.clientWidth + 1 && width > 20 && right <= row.getBoundingClientRect().right
  })`
  await expect.poll(() => me.page.evaluate(seen)).toEqual([true, true])
})
