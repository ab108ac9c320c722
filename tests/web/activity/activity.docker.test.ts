/** Tests how a person sees their own calls in Activity: a real server, a real sandbox, an outside client that waits for approval. */
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ApprovalsReply } from '../../../contract/rest.ts'
import { launchBrowser, visit } from '../../support/browser.ts'
import { type Served, stopServers } from '../../support/serve.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { seriousFaults } from '../serious-faults.ts'
import { servePage } from '../serve-page.ts'
import { WorkspacePage } from '../workspace-page.ts'

const steady = join(resolve(import.meta.dirname, '../../..'), 'tests/fixtures/children/steady.ts')
let server: Served
let browser: Browser

beforeAll(async () => {
  const dataDir = temporaryFolder()
  const entry = {
    command: process.execPath,
    args: [steady, join(temporaryFolder(), 'count')],
    approval: { write: 'ask' }
  }
  writeFileSync(join(dataDir, 'mcp.json'), JSON.stringify({ mcpServers: { steady: entry } }))
  server = await servePage({ dataDir })
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await stopServers()
})

it('shows the command of a chat with a link to it, and tells waiting from running; finds by text and date', async () => {
  const { page, offences, close } = await visit(browser, server.url)
  const me = new WorkspacePage(page)
  await me.composer.waitFor()
  await me.ask('run echo seen-in-activity')
  await me.approve()
  await me.quiet()
  const sessionId = me.sessionId()
  await page.goto(`${server.url}/#/activity`)
  const rows = page.getByRole('list', { name: /newest first/ }).locator('> li')
  const own = rows.filter({ hasText: 'workspace / execute_command' })
  await own.getByText('echo seen-in-activity', { exact: true }).waitFor()

  const client = new Client({ name: 'outside', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)))
  const params = { message: 'x' }
  const done = client.callTool({ name: 'execute', arguments: { server: 'steady', tool: 'write', params } })
  const asked = rows.filter({ hasText: 'steady / write' })
  await asked.getByText('waits for approval').waitFor()
  const waiting = async () => (await (await fetch(`${server.url}/api/approvals`)).json()) as ApprovalsReply
  await expect.poll(async () => (await waiting()).approvals.length).toBe(1)
  await page.getByRole('button', { name: /^Waiting for you:/ }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Approve/ })
    .and(page.locator('[aria-disabled=false]'))
    .click()
  expect((await done).isError).not.toBe(true)
  await page.keyboard.press('Escape')
  await asked.getByText(/waited .* for a person/).waitFor()

  await page.getByLabel('Text').fill('SEEN-in')
  await asked.waitFor({ state: 'detached' })
  await expect.poll(() => rows.count()).toBe(1)
  await page.getByLabel('To', { exact: true }).fill('2020-01-01')
  await page.getByText('Nothing matches this filter.').waitFor()
  expect(await seriousFaults(page)).toEqual([])
  await me.button('Clear the filter').click()
  await asked.waitFor()
  await page.getByLabel('Text').fill('seen-in')
  await own.getByRole('link', { name: /^Open/ }).click()
  await me.composer.waitFor()
  await expect.poll(() => me.sessionId()).toBe(sessionId)
  await client.close()
  expect(offences).toEqual([])
  await close()
})
