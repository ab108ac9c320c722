/** Pictures for the README, of the real page with a real sandbox: `node tests/web/take-screenshots.ts FOLDER`. */
import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { BrowserContextOptions } from 'playwright-core'
import { launchBrowser, PHONE, visit } from './browser.ts'
import { RealServer } from './real-server.ts'
import { WorkspacePage } from './workspace-page.ts'

const folder = resolve(process.argv[2] ?? 'docs/images')
const SCRIPT = 'import statistics\nprices = [3, 5, 8, 13]\nprint("mean", statistics.mean(prices))\n'

await mkdir(folder, { recursive: true })
const server = await RealServer.start()
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
    .and(one.page.locator(':enabled'))
    .waitFor()
  await one.page.screenshot({ path: join(folder, `${name}.png`) })
  await one.close()
}

try {
  await picture('workspace-light', { viewport: { width: 1360, height: 850 } })
  await picture('workspace-dark', { viewport: { width: 1360, height: 850 }, colorScheme: 'dark' })
  await picture('workspace-phone', { viewport: PHONE })
} finally {
  await browser.close()
  await server.stop()
}
