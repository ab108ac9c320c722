import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { child } from '../../../server/connections/connections.fixture.ts'
import { launchBrowser, PHONE, visit, WIDE } from '../../support/browser.ts'
import { type Served, stopServers } from '../../support/serve.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { seriousFaults } from '../serious-faults.ts'
import { servePage } from '../serve-page.ts'
import { WorkspacePage } from '../workspace-page.ts'

const SECRET = 'sk-do-not-show-this-1234'
/** The browser notes refusals as errors, also when the page had just asked for the old name. */
const REFUSED = /status of (404|409)/
const home = temporaryFolder()
let server: Served
let browser: Browser

beforeAll(async () => {
  mkdirSync(join(home, '.cursor'))
  const theirs = { imported: child('steady', [], { env: { API_KEY: SECRET } }), unwanted: child('who') }
  writeFileSync(join(home, '.cursor/mcp.json'), JSON.stringify({ mcpServers: theirs }))
  server = await servePage({}, { HOME: home })
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await stopServers()
})
const registry = () => join(server.dataDir, 'mcp.json')
const saved = () => readFileSync(registry(), 'utf8')

async function arrive(name: string) {
  const one = await visit(browser, server.url)
  const { page } = one
  await page.goto(`${server.url}/#/servers/${name}`)
  await page.getByRole('heading', { name, level: 2 }).waitFor()
  return { ...one, me: new WorkspacePage(page) }
}

it('edits and renames an entry, keeps its comments and its secret, and saves nothing over somebody else’s change', async () => {
  const { command, args } = child('steady')
  const entry = (mode: string) =>
    `{\n  "mcpServers": {\n    // ours\n    "steady": { "command": ${JSON.stringify(command)}, "args": ${JSON.stringify(args)}, "env": { "API_KEY": "${SECRET}", "MODE": "${mode}" } }\n  }\n}\n`
  writeFileSync(registry(), entry('x'))
  const { page, me, offences, close } = await arrive('steady')
  await me.button('Edit').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Value of MODE').fill('y')
  await dialog.getByLabel('Description').fill('Always there')
  await page.keyboard.press('Escape')
  await me.button('Edit').click()
  await expect.poll(() => dialog.getByLabel('Value of MODE').inputValue()).toBe('y')
  await dialog.getByText('Limits and routing').click()
  await dialog.getByLabel('Call timeout, ms').fill('5000')
  await page.setViewportSize(PHONE)
  expect(await seriousFaults(page)).toEqual([])
  await me.button('Show what would run').click()
  await dialog.getByText('set, looks like a secret').waitFor()
  expect(await seriousFaults(page)).toEqual([])
  expect(await page.content()).not.toContain(SECRET)
  await page.setViewportSize(WIDE)
  writeFileSync(registry(), entry('theirs'))
  await me.button('Save').click()
  await dialog.getByText(/has changed since it was shown, so nothing was saved/).waitFor()
  expect(saved()).toBe(entry('theirs'))
  await me.button('Open it again').click()
  await expect.poll(() => dialog.getByLabel('Value of MODE').inputValue()).toBe('theirs')
  // The keyboard alone.
  await dialog.getByLabel('Name', { exact: true }).and(page.locator(':focus')).waitFor()
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.type('renamed')
  await page.keyboard.press('Enter')
  await dialog.getByRole('region', { name: 'renamed' }).waitFor()
  await me.button('Save').press('Enter')
  await page.getByRole('heading', { name: 'renamed', level: 2 }).waitFor()
  await page.getByText(/It works: \d+ tools/).waitFor()
  expect(saved()).toBe(entry('theirs').replace('"steady":', '"renamed":'))

  // The rules of one tool.
  await me.button(/^Rules for write$/).click()
  await dialog.getByRole('radio', { name: /never runs/i }).check()
  await dialog.getByLabel(/It only reads/).check()
  await page.setViewportSize(PHONE)
  expect(await seriousFaults(page)).toEqual([])
  await page.setViewportSize(WIDE)
  await me.button('Save').click()
  const tool = page
    .getByRole('region', { name: 'Tools' })
    .getByRole('listitem')
    .filter({ hasText: /^write(?!_)/ })
  await tool.getByText('never runs').waitFor()
  expect(JSON.parse(saved().replace(/ *\/\/.*/, '')).mcpServers.renamed).toMatchObject({
    approval: { write: 'deny' },
    readOnly: ['write']
  })
  expect(saved()).toContain('// ours')
  expect(offences.filter((text) => !REFUSED.test(text))).toEqual([])
  await close()
})

it('follows the log until it is paused, and shows resources and prompts as plain text', async () => {
  const full = child('conformance-server')
  writeFileSync(
    registry(),
    JSON.stringify({ mcpServers: { full, steady: child('steady', [], { env: { TOKEN: SECRET } }) } })
  )
  const { page, me, offences, close } = await arrive('full')
  await me.button('List resources and prompts').click()
  await me.button('Read static-text').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('This is the content of the static text resource.').waitFor()
  expect(await seriousFaults(page)).toEqual([])
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  await me.button('Read template').click()
  await dialog.getByLabel(/^id\b/).fill('7')
  await page.keyboard.press('Enter')
  await dialog.getByRole('region', { name: 'Content' }).getByText('7').first().waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  await me.button('Open test_prompt_with_arguments').press('Enter')
  await dialog.getByLabel('arg1 *').fill('<img src=x onerror="window.hacked=1">')
  await dialog.getByLabel('arg2 *').fill('two')
  await page.keyboard.press('Enter')
  await dialog.getByText("arg2='two'").waitFor()
  await page.setViewportSize(PHONE)
  expect(await seriousFaults(page)).toEqual([])
  expect(await page.evaluate('window.hacked')).toBeUndefined()
  await page.keyboard.press('Escape')
  await page.setViewportSize(WIDE)

  const client = new Client({ name: 'outside', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)))
  const complain = () => client.callTool({ name: 'execute', arguments: { server: 'steady', tool: 'complain' } })
  await page.clock.install()
  await page.goto(`${server.url}/#/servers/steady`)
  const asked: string[] = []
  page.on('request', (request) => request.url().endsWith('/steady/log') && asked.push(request.url()))
  const log = page.getByRole('region', { name: 'Log', exact: true })
  const lines = async (text: Promise<string | null>) => (await text)?.match(/secret is \[secret\]/g)?.length
  await complain()
  await log.getByText('secret is [secret]').waitFor()
  await me.button('Pause the log').click()
  await complain()
  await expect.poll(() => lines(fetch(`${server.url}/api/servers/steady/log`).then((reply) => reply.text()))).toBe(2)
  const before = asked.length
  await page.clock.fastForward(5000)
  await page.evaluate('fetch("/healthz")')
  expect(asked).toHaveLength(before)
  expect(await lines(log.textContent())).toBe(1)
  await me.button('Follow the log').click()
  await expect.poll(() => lines(log.textContent())).toBe(2)
  await client.close()
  await page.goto(`${server.url}/#/activity`)
  // The name is the client's own claim, and the page says so.
  await page.getByText('a client over HTTP that calls itself outside/1').first().waitFor()
  expect(offences).toEqual([])
  await close()
})

it('adds a well-known server after showing its command, and imports one of another client on this machine', async () => {
  writeFileSync(registry(), '{"mcpServers": {"who": {"command": "x", "enabled": false}}}')
  const { page, me, offences, close } = await arrive('who')
  await me.button('Add a server').click()
  const dialog = page.getByRole('dialog')
  await me.button('Well-known servers').click()
  await dialog.getByText('npx -y @playwright/mcp --headless --isolated').waitFor()
  await page.setViewportSize(PHONE)
  expect(await seriousFaults(page)).toEqual([])
  await me.button('Add Filesystem').press('Enter')
  await dialog.getByLabel('Folder that it may use').and(page.locator(':focus')).waitFor()
  await page.keyboard.press('Enter')
  await dialog.getByText('Enter: Folder that it may use.').waitFor()
  await page.keyboard.type('/srv/notes')
  await page.keyboard.press('Enter')
  await dialog.getByText('npx -y @modelcontextprotocol/server-filesystem /srv/notes').waitFor()
  await me.button('Back').click()
  await expect.poll(() => dialog.getByLabel('Folder that it may use').inputValue()).toBe('/srv/notes')

  await me.button('From other clients').click()
  await dialog.getByRole('checkbox', { name: /^imported/ }).check()
  await dialog.getByRole('region', { name: 'unwanted' }).waitFor()
  expect(await seriousFaults(page)).toEqual([])
  expect(await page.content()).not.toContain(SECRET)
  await page.setViewportSize(WIDE)
  await me.button('Import and start 1 server').click()
  await page.getByRole('heading', { name: 'imported', level: 2 }).waitFor()
  await page.getByText(/It works: \d+ tools/).waitFor()
  expect(Object.keys(JSON.parse(saved()).mcpServers)).toEqual(['who', 'imported'])
  expect(offences).toEqual([])
  await close()
})
