/** A program on another port of the same host sets cookies for our page, in a real browser: ports don't separate cookies. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { OWNER_COOKIE } from '../../server/lib/web/browser-proof.ts'
import { launchBrowser, WIDE } from '../support/browser.ts'
import { browserOf } from '../support/browser-owner.ts'
import { type Served, stopServers } from '../support/serve.ts'
import { servePage } from './serve-page.ts'
import { WorkspacePage } from './workspace-page.ts'

let server: Served
let browser: Browser
let attacker: Server
/** The cookies that the attacker's port sets, and those that browsers have sent to it. */
let tossed: string[] = []
let received = ''
let context: BrowserContext

beforeAll(async () => {
  server = await servePage()
  browser = await launchBrowser()
  attacker = createServer((request, response) => {
    received = request.headers.cookie ?? ''
    response.setHeader('set-cookie', tossed).end('<title>Harmless</title>')
  })
  await new Promise<void>((resolve) => attacker.listen(0, '127.0.0.1', resolve))
})
afterAll(async () => {
  attacker?.close()
  await browser?.close()
  await stopServers()
})
beforeEach(async () => {
  context = await browser.newContext({ viewport: WIDE, reducedMotion: 'reduce' })
})
afterEach(() => context.close())

const attackerUrl = () => `http://127.0.0.1:${(attacker.address() as AddressInfo).port}/`

/** The sessions of the owner with these headers, or the reason why they are refused. */
async function sessionsOf(headers: Record<string, string>): Promise<string[] | string> {
  const reply = await (await fetch(`${server.url}/api/sessions`, { headers })).json()
  const { sessions, error } = reply as { sessions?: { title: string }[]; error?: { code: string } }
  return sessions?.map(({ title }) => title) ?? error?.code ?? 'nothing'
}

async function visitPage(page: Page): Promise<WorkspacePage> {
  await page.goto(server.url)
  const me = new WorkspacePage(page)
  await me.composer.waitFor()
  return me
}

// Checked: if the cookie alone makes an owner, the attacker's list shows the victim's session.
it.each([[['/']], [['/', '/api', '/api/sessions', '/socket.io/']]])(
  'an owner cookie of the attacker, set for %s, gets the attacker nothing: on a first visit and later',
  async (paths) => {
    const evil = browserOf(`attacker ${paths}`, server.url)
    const old = `${OWNER_COOKIE}=old-and-valid`
    tossed = paths.flatMap((path) => [evil.cookie, old].map((cookie) => `${cookie}; Path=${path}; Max-Age=99999`))
    const page = await context.newPage()
    await page.goto(attackerUrl())
    const me = await visitPage(page)
    await me.say('my first secret')
    await me.page.getByText('my first secret').first().waitFor()
    await me.quiet()
    expect(await sessionsOf(evil.headers)).toEqual([])
    expect(await sessionsOf({ cookie: old })).toBe('forbidden')

    // Later, with the victim's own cookie there: it is either taken again, or was overwritten for good.
    await page.goto(attackerUrl())
    expect(received).toContain(`mcpo_owner_${server.port}=`)
    expect(await sessionsOf({ cookie: received })).not.toEqual(['my first secret'])
    const again = await visitPage(page)
    await again.say('my second secret')
    await again.page.getByText('my second secret').first().waitFor()
    expect(await sessionsOf(evil.headers)).toEqual([])
    expect(await sessionsOf({ cookie: old })).toBe('forbidden')
  }
)

it('a second cookie is removed, and the victim finds the sessions again; another port can not become an owner here', async () => {
  tossed = []
  const page = await context.newPage()
  const me = await visitPage(page)
  await me.say('remember me')
  await me.page.getByText('remember me').first().waitFor()
  const evil = browserOf('attacker', server.url)
  tossed = ['/api', '/api/', '/api/sessions', '/socket.io', '/socket.io/'].map((path) => `${evil.cookie}; Path=${path}`)
  await page.goto(attackerUrl())
  const answers = await page.evaluate(async (url) => {
    const ask = (init: RequestInit) =>
      fetch(`${url}/api/owner`, { method: 'POST', ...init }).then(String, () => 'refused')
    const proof = 'p'.repeat(43)
    return [
      await ask({ credentials: 'include' }),
      await ask({ credentials: 'include', headers: { 'x-owner-proof': proof } }),
      localStorage.length
    ]
  }, server.url)
  expect(answers).toEqual(['refused', 'refused', 0])
  await (await visitPage(page)).page.getByText('remember me').first().waitFor()
  for (const at of ['/api/sessions', '/socket.io/']) {
    const paths = async () => (await context.cookies(server.url + at)).map(({ path }) => path)
    await expect.poll(paths).toEqual(['/'])
  }
})

it('two tabs that are opened at once are one owner', async () => {
  tossed = []
  const [one, two] = await Promise.all([visitPage(await context.newPage()), visitPage(await context.newPage())])
  await one.say('from the first tab')
  await one.page.getByText('from the first tab').first().waitFor()
  await two.page.reload()
  await two.page
    .getByRole('button', { name: /from the first tab/ })
    .first()
    .waitFor()
})

it('a browser that keeps nothing is told so, and works until it is reloaded', async () => {
  tossed = []
  await context.addInitScript(() => {
    Object.defineProperty(globalThis, 'localStorage', {
      get() {
        throw new DOMException('blocked', 'SecurityError')
      }
    })
  })
  const me = await visitPage(await context.newPage())
  await me.page.getByText('This browser stores nothing for this page').first().waitFor()
  await me.say('hello')
  await me.page.getByText('hello').first().waitFor()
})
