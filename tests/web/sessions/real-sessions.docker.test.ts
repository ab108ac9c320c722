/** Sessions on the real server: conversations can be found, exported, shared and imported. */
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { launchBrowser, visit } from '../../support/browser.ts'
import { type Served, stopServers } from '../../support/serve.ts'
import { discard, temporaryFolder } from '../../support/temporary-folder.ts'
import { seriousFaults } from '../serious-faults.ts'
import { servePage } from '../serve-page.ts'
import { WorkspacePage } from '../workspace-page.ts'

const folder = temporaryFolder()
let server: Served
let browser: Browser
beforeAll(async () => {
  server = await servePage()
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser.close()
  await stopServers()
  discard(folder)
})

async function saved(page: Page, format: string): Promise<string> {
  const begun = page.waitForEvent('download')
  await page
    .getByRole('button', { name: /^More for/ })
    .first()
    .click()
  await page.getByRole('button', { name: format }).click()
  const download = await begun
  const path = join(folder, download.suggestedFilename())
  await download.saveAs(path)
  return path
}

it('finds what was said, imports what was exported as history, and shares a file that does nothing', async () => {
  const { page, offences, close } = await visit(browser, server.url)
  const me = new WorkspacePage(page)
  await me.ask('run echo <b>pineapple</b>')
  await me.approve()
  await me.quiet()
  await me.page.getByText('pineapple').first().waitFor()
  const original = me.sessionId()
  const [json, html] = [await saved(page, 'Export as JSON'), await saved(page, 'Share as HTML file')]
  expect(basename(html)).toBe('run echo b pineapple b.html')

  await page.getByLabel('Exported conversation').setInputFiles({
    name: 'conversation.json',
    mimeType: 'application/json',
    buffer: await readFile(json)
  })
  await page.getByText('This conversation was imported from a file.').waitFor()
  await expect.poll(() => me.sessionId()).not.toBe(original)
  const record = page.getByRole('region', { name: 'Messages' })
  await record.getByText('Imported: not run here').first().waitFor()
  expect(await me.cards.count()).toBe(0)
  expect(await seriousFaults(page)).toEqual([])
  await me.ask('run echo from the import')
  await me.approve()
  await me.quiet()
  await me.outputs.getByText('from the import').first().waitFor()
  await page.getByLabel('Exported conversation').setInputFiles({
    name: 'x.json',
    mimeType: 'application/json',
    buffer: Buffer.from('{"conversation": {"entries": 1}}')
  })
  await page.getByText('This file is not a conversation exported as JSON').first().waitFor()

  await page.getByRole('searchbox').fill('PINEAPPLE run')
  const results = page.getByRole('list', { name: 'Search results' })
  await expect.poll(() => results.getByRole('button', { name: 'You: run echo <b>pineapple</b>' }).count()).toBe(2)
  expect(offences.filter((text) => !text.includes('400'))).toEqual([])
  await close()

  const shared = await browser.newContext()
  const requests: string[] = []
  shared.on('request', (request) => requests.push(request.url()))
  const reader = await shared.newPage()
  const complaints: string[] = []
  reader.on('console', (message) => complaints.push(message.text()))
  await reader.goto(pathToFileURL(html).href)
  await reader.getByRole('heading', { level: 1 }).waitFor()
  await reader.locator('summary').first().click()
  await reader.getByText('echo <b>pineapple</b>').first().waitFor()
  expect(
    await reader.evaluate<string>('getComputedStyle(document.querySelector(".user .text")).borderRadius')
  ).not.toBe('0px')
  expect(requests).toEqual([pathToFileURL(html).href])
  expect(complaints).toEqual([])
  await shared.close()
})
