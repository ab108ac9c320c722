import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { child } from '../../../server/connections/connections.fixture.ts'
import { startAnthropicServer } from '../../fixtures/model-servers/anthropic-server.ts'
import { launchBrowser, visit } from '../../support/browser.ts'
import { stopServers } from '../../support/serve.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { seriousFaults } from '../serious-faults.ts'
import { servePage } from '../serve-page.ts'
import { WorkspacePage } from '../workspace-page.ts'

const KEY = 'sk-ant-the-right-one-4321'
const model = (id: string) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01' })
/** Browsers note refused requests as errors. */
const REFUSED = /status of 400/

let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await stopServers()
})

it('says what is wrong with a key and with LLM_MODEL, takes a key, and offers what the new model can do', async () => {
  const missing = { status: 404, body: { type: 'error', error: { type: 'not_found_error', message: 'model: gone' } } }
  const vendor = await startAnthropicServer({
    apiKey: KEY,
    models: [model('claude-a'), model('claude-gone')],
    otherwise: ({ body }) =>
      (body as { model: string }).model === 'claude-gone' ? missing : { text: 'Hello from the vendor.' }
  })
  const dataDir = temporaryFolder()
  const credentials = join(dataDir, 'credentials.json')
  writeFileSync(credentials, '{}', { mode: 0o600 })
  const config = join(dataDir, 'mcp.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { notes: child('steady') } }))
  const server = await servePage(
    { dataDir },
    {
      LLM_PROVIDER: 'anthropic',
      LLM_MODEL: 'claude-imagined',
      ANTHROPIC_BASE_URL: vendor.url,
      ANTHROPIC_API_KEY: 'sk-ant-a-wrong-one-1234',
      CREDENTIALS_FILE: credentials,
      MCP_CONFIG: config
    }
  )
  const { page, offences, close } = await visit(browser, server.url)
  const me = new WorkspacePage(page)
  await me.composer.waitFor()
  await page
    .getByRole('alert')
    .getByText(/Anthropic rejected the key \(401\)/)
    .waitFor()
  await me.button('list the files').waitFor()
  const form = page.getByRole('form', { name: 'Key of a model provider' })
  expect(await seriousFaults(page)).toEqual([])
  await form.getByLabel('API key').fill('sk-ant-another-wrong-one')
  await form.getByLabel('API key').press('Enter')
  await form.getByText(/rejected the key/).waitFor()
  await form.getByLabel('API key').fill(KEY)
  await form.getByLabel('API key').press('Enter')
  await page.getByText('The key works and is saved.').waitFor()
  expect(readFileSync(credentials, 'utf8')).toContain(KEY)
  await page.getByText(/does not offer "claude-imagined" \(LLM_MODEL\)/).waitFor()
  await form.waitFor({ state: 'hidden' })
  await me.button('What can you do in this workspace?').waitFor()
  await me.button(/^Choose a model, now claude-a/).waitFor()
  expect(await page.textContent('body')).not.toContain(KEY)
  await me.say('hello')
  await page.getByText('Hello from the vendor.').waitFor()

  // A model that answers 404 leaves the list.
  await me.button(/^Choose a model/).click()
  await me.button('claude-gone').click()
  await me.button('Switch').click()
  await page
    .getByText(/has no model "claude-gone"/)
    .first()
    .waitFor()
  await page.keyboard.press('Escape')
  await me.button(/^Choose a model/).click()
  await me
    .button(/^claude-a/)
    .first()
    .waitFor()
  await expect.poll(() => me.button('claude-gone').count()).toBe(0)
  expect(offences.filter((text) => !REFUSED.test(text))).toEqual([])
  await close()
  await server.stop()
  await vendor.close()
})

it('says that models are being looked for while a provider takes its time', async () => {
  const released = Promise.withResolvers<void>()
  const slow = createServer(async (_request, response) => {
    await released.promise
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ data: [model('claude-a')] }))
  })
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
  const env = { LLM_PROVIDER: 'anthropic', ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: KEY }
  const server = await servePage({}, env)
  const { page, close } = await visit(browser, server.url)
  await page.getByText('Looking for models…').waitFor()
  released.resolve()
  await new WorkspacePage(page).composer.waitFor()
  await page.getByText('Looking for models…').waitFor({ state: 'hidden' })
  await close()
  await server.stop()
  slow.closeAllConnections()
  slow.close()
})
