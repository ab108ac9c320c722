/** A page on a fake server, anew for each test of a file: call it once at the top. */
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { launchBrowser, type Visit, visit } from '../support/browser.ts'
import { FakeServer, type FakeSession } from './fake-server.ts'
import { buildPage } from './serve-page.ts'
import { WorkspacePage } from './workspace-page.ts'

export interface FakePage {
  fake: FakeServer
  offences: string[]
  /** Waits for nothing that would be there; `arrive` waits for the composer. */
  open(url?: string, options?: BrowserContextOptions): Promise<WorkspacePage>
  arrive(
    open?: (session: FakeSession) => void,
    options?: BrowserContextOptions
  ): Promise<{ me: WorkspacePage; session: FakeSession }>
}

export function useFakePage(): () => FakePage {
  let browser: Browser
  let now: FakePage
  let one: Visit | undefined
  beforeAll(async () => {
    await buildPage()
    browser = await launchBrowser()
  })
  afterAll(() => browser?.close())
  beforeEach(async () => {
    const fake = await FakeServer.start()
    now = {
      fake,
      offences: [],
      open: async (url = fake.url, options = {}) => {
        one = await visit(browser, url, options)
        now.offences = one.offences
        return new WorkspacePage(one.page)
      },
      arrive: async (open = () => {}, options = {}) => {
        fake.onOpen = open
        const me = await now.open(fake.url, options)
        try {
          await me.composer.waitFor()
        } catch (error) {
          const shown = await me.page.locator('body').ariaSnapshot()
          throw new Error(`The page did not open. It shows: ${shown}\n${now.offences.join('\n')}`, { cause: error })
        }
        return { me, session: fake.session(me.sessionId()) }
      }
    }
  })
  afterEach(async () => {
    await one?.close()
    await now.fake.stop()
  })
  return () => now
}
