import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { launchBrowser, PHONE, type Visit, visit, WIDE } from '../support/browser.ts'
import { type Served, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { seriousFaults } from './serious-faults.ts'
import { servePage } from './serve-page.ts'
import { WorkspacePage } from './workspace-page.ts'

const root = resolve(import.meta.dirname, '../..')
const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const fixture = (name: string) => join(root, 'tests/fixtures/children', `${name}.ts`)
const SECRET = 'sk-do-not-show-this-1234'
/** The browser notes it when the page had just asked for a server that is being removed. */
const REMOVED = /status of 404/

let server: Served
let browser: Browser
const visits: Visit[] = []

beforeAll(async () => {
  const dataDir = temporaryFolder()
  const credentials = join(dataDir, 'credentials.json')
  writeFileSync(credentials, '{}', { mode: 0o600 })
  server = await servePage({ dataDir }, { CREDENTIALS_FILE: credentials, AUDIT_ARGUMENTS: 'true' })
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await stopServers()
})
afterEach(async () => {
  for (const one of visits.splice(0)) await one.close()
})

async function arrive(options: Parameters<typeof visit>[2] = {}): Promise<WorkspacePage & { visit: Visit }> {
  const one = await visit(browser, server.url, options)
  visits.push(one)
  const me = Object.assign(new WorkspacePage(one.page), { visit: one })
  await me.composer.waitFor()
  return me
}
const registry = () => join(server.dataDir, 'mcp.json')
const write = (mcpServers: Record<string, unknown>) => writeFileSync(registry(), JSON.stringify({ mcpServers }))
const link = (page: Page, name: string | RegExp) => page.getByRole('link', { name })

describe('the servers in the page', () => {
  it('adds one by paste once its exact command is confirmed, and the chat can use it at once; disables and removes it', async () => {
    const me = await arrive()
    const { page } = me
    await link(page, 'Servers').click()
    await me.button('Add the first one').click()
    const entry = { command: process.execPath, args: [everything], env: { API_KEY: SECRET } }
    await page.getByRole('textbox', { name: /mcpServers/ }).fill(JSON.stringify({ mcpServers: { everything: entry } }))
    await me.button('Show what would run').click()
    const dialog = page.getByRole('dialog', { name: 'This is what will run' })
    await dialog.getByText(`${process.execPath} ${everything}`).waitFor()
    await dialog.getByText(/looks like a secret, and is written into mcp.json as plain text/).waitFor()
    expect(await dialog.textContent()).not.toContain(SECRET)
    expect(() => statSync(registry())).toThrow()
    await dialog.getByLabel(/Keep the secrets in the credentials file/).check()
    await dialog.getByText(`\${secret:EVERYTHING_API_KEY}`).waitFor()
    await me.button('Add and start it').click()
    await page.getByText(/It works: \d+ tools/).waitFor()
    expect(readFileSync(registry(), 'utf8')).not.toContain(SECRET)
    expect(readFileSync(join(server.dataDir, 'credentials.json'), 'utf8')).toContain(SECRET)
    expect(statSync(registry()).mode & 0o777).toBe(0o600)
    await page.getByRole('region', { name: 'Tools' }).getByText('echo', { exact: true }).waitFor()
    await page.getByText('Healthy').waitFor()
    expect(await page.textContent('body')).not.toContain(SECRET)

    await me.button(/^New session$/).click()
    await me.ask('use everything__echo {"message":"from the page"}')
    await me.cards.getByText('everything', { exact: false }).first().waitFor()
    await me.approve()
    await me.outputs.getByText('Echo: from the page').waitFor()
    await me.quiet()

    await link(page, 'Servers').click()
    await page.getByText('1 call', { exact: false }).first().waitFor()
    await link(page, /^everything/).click()
    await me.button('Disable').click()
    await me.button('Enable').waitFor()
    await page.getByText('The server offers no tools while it is off.').waitFor()
    expect(JSON.parse(readFileSync(registry(), 'utf8')).mcpServers.everything.enabled).toBe(false)
    await me.button('Remove').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No servers yet').waitFor()
    expect(JSON.parse(readFileSync(registry(), 'utf8'))).toEqual({ mcpServers: {} })
    expect(me.visit.offences.filter((text) => !REMOVED.test(text))).toEqual([])
  })

  it('tries a tool with a form from its schema; one that may change something asks first, and both are recorded', async () => {
    const written = join(temporaryFolder(), 'written')
    write({ steady: { command: process.execPath, args: [fixture('steady'), written] } })
    const me = await arrive()
    const { page } = me
    await page.goto(`${server.url}/#/servers/steady`)
    await me.button('Test').click()
    await page.getByText(/It works: \d+ tools/).waitFor()
    await me.button('Try echo').click()
    const dialog = page.getByRole('dialog', { name: 'Try echo' })
    await dialog.getByLabel('message *').fill('from a form')
    await dialog.getByRole('button', { name: 'Run' }).click()
    await dialog.getByRole('region', { name: 'Result' }).getByText('from a form').waitFor()
    expect(await seriousFaults(page)).toEqual([])
    await page.keyboard.press('Escape')

    await me.button('Try write').first().click()
    const writing = page.getByRole('dialog', { name: 'Try write' })
    await writing.getByLabel('message *').fill('once')
    await writing.getByRole('button', { name: 'Run' }).click()
    await page.getByText('the server does not mark it as read-only').waitFor()
    expect(() => statSync(written)).toThrow()
    await me.button('Run it').click()
    await writing.getByRole('region', { name: 'Result' }).getByText('written').waitFor()
    expect(readFileSync(written, 'utf8')).toBe('once\n')
    await page.keyboard.press('Escape')

    const before = await page.getByText('running', { exact: true }).count()
    expect(before).toBe(1)
    await me.button('Restart').click()
    await page.getByText(/It works: \d+ tools/).waitFor()
    await link(page, 'Activity').click()
    await page.getByText('write', { exact: false }).first().waitFor()
    expect(me.visit.offences).toEqual([])
  })

  it('adds one by form, with the keyboard alone, and says why one does not start', async () => {
    const me = await arrive()
    const { page } = me
    const { keyboard } = page
    await page.goto(`${server.url}/#/servers`)
    await me.button('Add a server').focus()
    await keyboard.press('Enter')
    await me.button('Fill in a form').focus()
    await keyboard.press('Enter')
    await page.getByLabel('Name', { exact: true }).focus()
    await keyboard.type('sick')
    await page.getByLabel('Command', { exact: true }).focus()
    await keyboard.type(process.execPath)
    await keyboard.press('Tab')
    await keyboard.type(fixture('crash-on-start'))
    await me.button('Show what would run').focus()
    await keyboard.press('Enter')
    await page.getByText('outside any sandbox').waitFor()
    await me.button('Add and start it').focus()
    await keyboard.press('Enter')
    await page
      .getByRole('region', { name: 'Servers' })
      .getByText(/did not start.*exit code 7/)
      .first()
      .waitFor()
    await page.getByText('Failing').waitFor()
    await page.getByRole('region', { name: 'Log', exact: true }).getByText('no configuration').waitFor()
    expect(me.visit.offences).toEqual([])
  })

  it('shows what changes in the file by itself: new servers, broken entries, a broken file', async () => {
    write({ good: { command: process.execPath, args: [fixture('steady')] } })
    const me = await arrive()
    const { page } = me
    await page.goto(`${server.url}/#/servers`)
    await link(page, /^good/).waitFor()
    write({ good: { command: process.execPath, args: [fixture('steady')] }, bad: { command: 7 } })
    await page.getByText(/"command" must be a text/).waitFor()
    writeFileSync(registry(), '{ "mcpServers": { oops } }')
    await page.getByText('The file can’t be used.').waitFor()
    await link(page, /^good/).waitFor()
    await page.getByText(/line 1, column 19: this is not JSON/).waitFor()
    // An entry that can't be read is fixed as JSON.
    write({ bad: { command: 7, args: [fixture('steady')], env: { API_KEY: 'sk-do-not-show-1234' } } })
    await link(page, /^good/).waitFor({ state: 'hidden' })
    await me.button('Fix bad').click()
    const text = page.getByRole('dialog').getByRole('textbox', { name: /The entry “bad”/ })
    await expect.poll(() => text.inputValue()).toContain('"command": 7')
    const raw = await text.inputValue()
    expect(raw).not.toContain('sk-do-not-show')
    await text.fill(raw.replace('7,', '7'))
    await me.button('Show what would run').click()
    await page.getByText('This is not valid JSON: line 3, column 3').waitFor()
    expect(await seriousFaults(page)).toEqual([])
    // A hidden value stays with its program, so another program needs it again.
    const fixed = raw.replace('7,', `${JSON.stringify(process.execPath)},`)
    await text.fill(fixed.replace('"API_KEY": null', '"API_KEY": "sk-another-one-1234"'))
    await me.button('Show what would run').click()
    await me.button('Save').click()
    await link(page, /^bad/).waitFor()
    expect(readFileSync(registry(), 'utf8')).toContain('sk-another-one-1234')
    write({ bad: { command: 7 } })
    await link(page, /^bad/).waitFor({ state: 'hidden' })
    await me.button('Remove bad').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No servers yet').waitFor()
    expect(me.visit.offences).toEqual([])
  })

  // Checked: with `v-html`, the tag is no longer text.
  it('shows hostile names, commands and texts as text', async () => {
    write({})
    const me = await arrive()
    const { page } = me
    await page.goto(`${server.url}/#/servers`)
    const name = '<img src=x onerror="window.hacked=1">/?#%'
    const entry = {
      command: 'echo',
      args: ['a\u200bb', 'c\u202ed', '"; rm -rf /'],
      description: '<script>window.hacked=1</script>'
    }
    await me.button('Add a server').click()
    await page.getByRole('textbox', { name: /mcpServers/ }).fill(JSON.stringify({ [name]: entry }))
    await me.button('Show what would run').click()
    const dialog = page.getByRole('dialog', { name: 'This is what will run' })
    await dialog.getByText('U+202E').first().waitFor()
    await dialog.getByText('U+200B').first().waitFor()
    await me.button('Add and start it').click()
    await page
      .getByRole('region', { name: 'Servers' })
      .getByText(/did not start|ended/)
      .first()
      .waitFor()
    await page.getByRole('heading', { name: /<img src=x/ }).waitFor()
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    expect(await page.locator('img[src="x"]').count()).toBe(0)
    await me.button('Add a server').click()
    await page.getByRole('textbox', { name: /mcpServers/ }).fill('{"mcpServers":\n{"a": <b>}}')
    await me.button('Show what would run').click()
    await page
      .getByRole('alert')
      .getByText(/The pasted text, line 2/)
      .waitFor()
    await page.keyboard.press('Escape')
    await me.button('Add a server').click()
    // Seen before: Escape lost everything that was entered.
    await expect.poll(() => page.getByRole('textbox', { name: /mcpServers/ }).inputValue()).toContain('<b>')
    await page.keyboard.press('Escape')
    await me.button('Remove').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No servers yet').waitFor()
    // The browser notes the refusal of what can't be read by itself.
    expect(me.visit.offences.filter((text) => !/status of 400/.test(text) && !REMOVED.test(text))).toEqual([])
  })

  it('shows what was routed and called, newest first, filtered and page by page', async () => {
    write({ steady: { command: process.execPath, args: [fixture('steady')] } })
    const client = new Client({ name: 'outside', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)))
    const echo = (message: string) =>
      client.callTool({ name: 'execute', arguments: { server: 'steady', tool: 'echo', params: { message } } })
    await expect.poll(async () => (await echo('first')).isError).not.toBe(true)
    const request = '<img src=x onerror="window.hacked=1"> find \u202e'
    await client.callTool({ name: 'find_tool', arguments: { query: request } })
    const me = await arrive()
    const { page } = me
    await link(page, 'Activity').click()
    const rows = page.getByRole('list', { name: /newest first/ }).locator('> li')
    await rows.getByText('U+202E').first().waitFor()
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    const calls = rows.filter({ hasText: 'steady / echo' })
    await calls.getByText('a client over HTTP').first().waitFor()
    // It comes by itself.
    const before = await calls.count()
    await echo('second')
    await expect.poll(() => calls.count()).toBeGreaterThan(before)
    // An outcome that no test here produces.
    await page.getByLabel('Outcome').selectOption('needs_params')
    await page.getByText('Nothing matches this filter.').waitFor()
    await page.getByLabel('Outcome').selectOption('')
    await page.getByLabel('Server', { exact: true }).fill('steady')
    await calls.first().waitFor()
    await rows.filter({ hasText: 'U+202E' }).first().waitFor({ state: 'detached' })
    await Promise.all(Array.from({ length: 60 }, (_, at) => echo(`call ${at}`)))
    // A click while the rows are loaded again does nothing.
    const older = me.button('Show older')
    const shown = async () => {
      if (await older.isVisible()) await older.click()
      return calls.count()
    }
    await expect.poll(shown).toBeGreaterThan(60)
    expect(await seriousFaults(page)).toEqual([])
    await client.close()
    expect(me.visit.offences).toEqual([])
  })

  it('has no serious fault on any screen: light, dark, and on a phone', async () => {
    const approval = { echo: 'allow', env: 'deny' }
    write({
      steady: { command: process.execPath, args: [fixture('steady')], approval },
      off: { command: 'x', enabled: false },
      bad: {}
    })
    const me = await arrive()
    const { page } = me
    const faults: string[] = []
    const look = async (screen: string) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await lookOnce(`${screen}, ${colorScheme}`)
      }
      await page.setViewportSize(PHONE)
      await lookOnce(`${screen}, phone`)
      await page.setViewportSize(WIDE)
    }
    const lookOnce = async (screen: string) => {
      faults.push(...(await seriousFaults(page)).map((id) => `${screen}: ${id}`))
      const tooWide = (await page.evaluate(
        'Math.max(...[...document.querySelectorAll("html, section, dialog div")].map((e) => e.scrollWidth - e.clientWidth))'
      )) as number
      if (tooWide > 0) faults.push(`${screen}: ${tooWide} px too wide`)
    }
    await page.goto(`${server.url}/#/servers`)
    await link(page, /^steady/).waitFor()
    await look('list')
    await link(page, /^steady/).click()
    await me.button('Test').click()
    await page.getByText(/It works/).waitFor()
    await page.getByText('runs without asking').first().waitFor()
    await look('server')
    await page.goto(`${server.url}/#/activity`)
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
    await look('activity')
    await page.goto(`${server.url}/#/servers`)
    await me.button('Add a server').click()
    await look('paste')
    await me.button('Fill in a form').click()
    await look('form')
    await page.getByLabel('Name', { exact: true }).fill('next')
    await page.getByLabel('Command', { exact: true }).fill('x'.repeat(300))
    await page.getByRole('textbox', { name: /^Variables/ }).fill('API_KEY=abcd1234')
    await me.button('Show what would run').click()
    await page.getByRole('dialog', { name: 'This is what will run' }).waitFor()
    await look('plan')
    expect(faults).toEqual([])
    expect(me.visit.offences).toEqual([])
  })
})
