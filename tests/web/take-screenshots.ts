/** Pictures for the README, of the real page with a real sandbox: `node tests/web/take-screenshots.ts FOLDER`. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { BrowserContextOptions } from 'playwright-core'
import { launchBrowser, PHONE, visit } from '../support/browser.ts'
import { stopServers } from '../support/serve.ts'
import { servePage } from './serve-page.ts'
import { WorkspacePage } from './workspace-page.ts'

const folder = resolve(process.argv[2] ?? 'docs/pictures')
const SCRIPT = 'import statistics\nprices = [3, 5, 8, 13]\nprint("mean", statistics.mean(prices))\n'

await mkdir(folder, { recursive: true })
const server = await servePage()
const browser = await launchBrowser()

async function picture(name: string, options: BrowserContextOptions): Promise<void> {
  const one = await visit(browser, server.url, { deviceScaleFactor: 1.5, ...options })
  const me = new WorkspacePage(one.page)
  await me.composer.waitFor()
  await me.ask(`write mean.py: ${SCRIPT}`)
  if (options.viewport?.width !== PHONE.width) await me.button('Show the files').click()
  await me.approve()
  await me.quiet()
  await me.ask('run python3 mean.py && ls --color=always -l')
  await me.approve()
  await me.quiet()
  await me.ask(`write mean.py: ${SCRIPT.replace('13]', '13, 21]')}`)
  await me.cards.getByText('Changes the file').waitFor()
  await me
    .button(/^Approve$/)
    .and(one.page.locator('[aria-disabled=false]'))
    .waitFor()
  await one.page.screenshot({ path: join(folder, `${name}.png`) })
  await one.close()
}

/** One server that works, one that is off, one whose command is missing. */
async function serversPicture(): Promise<void> {
  // Not in the data folder, which no server can see.
  const packages = join(await mkdtemp(join(tmpdir(), 'mcp-')), 'servers')
  await symlink(resolve('node_modules/@modelcontextprotocol'), packages)
  const mcpServers = {
    everything: { command: 'node', args: [join(packages, 'server-everything/dist/index.js')] },
    memory: { command: 'node', args: [join(packages, 'server-memory/dist/index.js')], enabled: false },
    notes: { command: 'notes-mcp', args: ['--folder', 'notes'] }
  }
  await writeFile(join(server.dataDir, 'mcp.json'), JSON.stringify({ mcpServers }))
  const one = await visit(browser, server.url, { deviceScaleFactor: 1.5, viewport: { width: 1360, height: 850 } })
  const me = new WorkspacePage(one.page)
  for (const [name, end] of [
    ['notes', 'Failing'],
    ['everything', 'Healthy']
  ] as const) {
    await one.page.goto(`${server.url}/#/servers/${name}`)
    await me.button('Test').click()
    await one.page.getByText(end).waitFor()
  }
  await one.page.screenshot({ path: join(folder, 'servers.png') })
  await one.close()
  await rm(dirname(packages), { recursive: true })
}

try {
  await picture('workspace-light', { viewport: { width: 1360, height: 850 } })
  await picture('workspace-dark', { viewport: { width: 1360, height: 850 }, colorScheme: 'dark' })
  await picture('workspace-phone', { viewport: PHONE })
  // Last: its server that does not start would be a notice in the chats.
  await serversPicture()
} finally {
  await browser.close()
  await stopServers()
}
