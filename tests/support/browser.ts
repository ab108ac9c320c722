/** A real Chromium for the page's tests, with what a page must never do noted down: errors and requests to other hosts. */
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { PATIENCE_MS } from './patience-ms.ts'

const ARGS =
  '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync'
const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

export const WIDE = { width: 1440, height: 900 }
export const PHONE = { width: 390, height: 844 }

export function chromiumPath(): string {
  const found = PLACES.find((path) => existsSync(path))
  if (!found) throw new Error('There is no Chromium: run `npm run setup`.')
  return found
}

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: chromiumPath(), args: ARGS.split(' ') })
}

export interface Visit {
  page: Page
  /** Errors in the console, and requests to any other host than the server's. */
  offences: string[]
  close(): Promise<void>
}

export async function visit(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({ viewport: WIDE, reducedMotion: 'reduce', ...options })
  context.setDefaultTimeout(2 * PATIENCE_MS)
  const page = await context.newPage()
  const offences = watchOffences(page, url)
  await page.goto(url)
  return { page, offences, close: () => context.close() }
}

export function watchOffences(page: Page, url: string): string[] {
  const offences: string[] = []
  const host = new URL(url).host
  page.on('pageerror', (error) => offences.push(`error: ${error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') offences.push(`console: ${message.text()}`)
  })
  page.on('request', (request) => {
    const asked = new URL(request.url())
    if (!/^(data|blob):$/.test(asked.protocol) && asked.host !== host) offences.push(`request: ${request.url()}`)
  })
  return offences
}
