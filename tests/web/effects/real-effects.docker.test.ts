/** Preview, Review and undo in the page, with the real server and the real engine. */
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser, type Visit, visit } from '../../support/browser.ts'
import { type Served, stopServers } from '../../support/serve.ts'
import { servePage } from '../serve-page.ts'
import { WorkspacePage } from '../workspace-page.ts'

let server: Served
let browser: Browser
let seen: Visit
let me: WorkspacePage

beforeAll(async () => {
  server = await servePage()
  browser = await launchBrowser()
  seen = await visit(browser, server.url)
  me = new WorkspacePage(seen.page)
  await me.composer.waitFor()
})
afterAll(async () => {
  await browser?.close()
  await stopServers()
})

const file = (name: string, person = me) => person.button(new RegExp(`^${name.replace('.', '\\.')}`))

async function selectMode(name: 'Preview' | 'Review', person = me): Promise<void> {
  await person.button(/^Approval mode/).click()
  await person.button(new RegExp(`^${name}`)).click()
  await person.button(new RegExp(`^Approval mode, now ${name}`)).waitFor()
}

it('keeps a preview, accepts a part of a review, and undoes a version', async () => {
  await me.ask('write first.txt: one')
  await me.approve()
  await me.quiet()
  await me.button('Show the files').click()
  await file('first.txt').waitFor()

  await selectMode('Preview')
  await me.say('run mv first.txt second.txt && rm -rf gone && echo done')
  const card = me.page.getByRole('region', { name: 'Preview: keep or discard?' })
  await card.getByText('second.txt').first().waitFor()
  expect(await file('second.txt').count()).toBe(0)
  await card.getByRole('button', { name: /^Keep/ }).and(me.page.locator('[aria-disabled=false]')).click()
  await me.quiet()
  await file('second.txt').waitFor()
  await expect.poll(() => file('first.txt').count()).toBe(0)

  await selectMode('Review')
  await me.say('run echo good > good.txt; echo bad > bad.txt; rm second.txt')
  await me.quiet()
  expect(await file('good.txt').count()).toBe(0)
  await me.button(/^Review 3 files/).click()
  const dialog = me.page.getByRole('dialog', { name: 'Review the changes' })
  const list = dialog.getByRole('listbox', { name: 'Changed files' })
  await list.and(me.page.locator(':focus')).waitFor()
  // The first one is bad.txt.
  await me.page.keyboard.press('Space')
  await dialog
    .getByRole('button', { name: 'Accept 2 of 3 files' })
    .and(me.page.locator('[aria-disabled=false]'))
    .click()
  await me.page.getByText('Not accepted: bad.txt').waitFor()
  await file('good.txt').waitFor()
  await expect.poll(() => file('second.txt').count()).toBe(0)
  expect(await file('bad.txt').count()).toBe(0)

  await me.button('History of the files').click()
  const versions = me.page.getByRole('list', { name: 'Versions of the workspace' }).getByRole('listitem')
  await expect.poll(() => versions.count()).toBe(3)
  await versions.first().getByRole('button', { name: 'More for this version' }).click()
  await me.button('Undo this change').click()
  const plan = me.page.getByRole('dialog', { name: 'Undo this change' })
  await plan.getByRole('button', { name: 'Revert 2 files' }).and(me.page.locator('[aria-disabled=false]')).click()
  await plan.waitFor({ state: 'hidden' })
  await expect.poll(() => me.read(versions.first())).toContain('You undid a change')
  expect(seen.offences).toEqual([])
})

it("undoes one call of an accepted review, and leaves the other calls' files", async () => {
  const visited = await visit(browser, server.url)
  const person = new WorkspacePage(visited.page)
  await person.composer.waitFor()
  await selectMode('Review', person)
  await person.say('run echo 1 > one.txt')
  await person.quiet()
  await person.button('Review 1 file').waitFor()
  await person.say('run echo 2 > two.txt')
  await person.quiet()
  await person.button('Review 2 files').click()
  await person.page
    .getByRole('button', { name: 'Accept all 2 files' })
    .and(person.page.locator('[aria-disabled=false]'))
    .click()
  await person.button('Show the files').click()
  await file('one.txt', person).waitFor()
  await person.button('Actions for this call').first().click()
  await person.button('Undo this change…').click()
  await person.page
    .getByRole('button', { name: 'Revert 1 file' })
    .and(person.page.locator('[aria-disabled=false]'))
    .click()
  await expect.poll(() => file('one.txt', person).count()).toBe(0)
  expect(await file('two.txt', person).count()).toBe(1)
  expect(visited.offences).toEqual([])
})
