import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLogger } from '../../server/lib/logger.ts'
import { openEmbeddedStore } from '../../server/storage/embedded/open-embedded-store.ts'
import type { NewEvent } from '../../server/storage/event-log.ts'
import { launchBrowser, visit } from '../support/browser.ts'
import { type Served, stopServers } from '../support/serve.ts'
import { servePage } from './serve-page.ts'
import { WorkspacePage } from './workspace-page.ts'

let server: Served
let browser: Browser
const ENTRIES = 5000
const LIMIT_MS = 100
const MB = 2 ** 20

beforeAll(async () => {
  server = await servePage()
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await stopServers()
})

/** A long conversation of all kinds of entries, put into the log while the server is away. */
async function fill(sessionId: string): Promise<void> {
  const store = await openEmbeddedStore({ dataDir: server.dataDir, logger: createLogger('silent') })
  const events: NewEvent[] = []
  for (let turn = 0; turn * 3 < ENTRIES; turn++) {
    const ids = { turnId: `turn-${turn}`, callId: `call-${turn}` }
    const text = `Question ${turn} about *something*`
    const output = `line of output ${turn}\n`.repeat(1 + (turn % 30))
    events.push(
      { type: 'user:message', data: { turnId: ids.turnId, text } },
      {
        type: 'agent:response',
        data: { turnId: ids.turnId, text: `Answer ${turn}\n\n- a\n- b\n\n\`\`\`js\nlet x = ${turn}\n\`\`\`` }
      },
      {
        type: 'tool:approval_required',
        data: {
          ...ids,
          server: 'workspace',
          name: 'execute_command',
          args: { command: `echo ${turn}` },
          definition: 'd',
          hash: 'h',
          queuePosition: 1,
          totalInQueue: 1
        }
      },
      { type: 'tool:approval_resolved', data: { callId: ids.callId, approved: true, by: 'human' } },
      { type: 'tool:started', data: { callId: ids.callId } },
      {
        type: 'tool:result',
        data: { callId: ids.callId, isError: false, content: [{ type: 'text', text: `${output}[exit code 0, 3 ms]` }] }
      },
      { type: 'turn:end', data: { turnId: ids.turnId, reason: 'done' } }
    )
  }
  for (let from = 0; from < events.length; from += 500)
    await store.events.append(sessionId, events.slice(from, from + 500))
  await store.close()
}

type Until = 'shown' | 'handled'

/**
 * From the key or click until the next frame is shown, or until the page has handled it, as the browser measures it: of all, the one that only 1 in 20 exceeds;
 * and of three rounds the best. Other load on the machine makes one slow, a slow page all of them.
 */
async function interactionMs(page: Page, interact: () => Promise<void>, until: Until = 'shown'): Promise<number> {
  const rounds: number[] = []
  while (rounds.length < 3 && !rounds.some((ms) => ms < LIMIT_MS / 2))
    rounds.push(await oneRound(page, until, interact))
  return Math.min(...rounds)
}

async function oneRound(page: Page, until: Until, interact: () => Promise<void>): Promise<number> {
  await page.evaluate(`{
    globalThis.slow = []
    globalThis.observer?.disconnect()
    globalThis.observer = new PerformanceObserver((list) => {
      for (const { name, duration, startTime, processingEnd } of list.getEntries()) {
        if (/^(key|pointerdown|click|input)/.test(name)) slow.push({ shown: duration, handled: processingEnd - startTime })
      }
    })
    observer.observe({ type: 'event', durationThreshold: 16 })
    // Headless Chromium reports a frame as shown only when a later one is asked for: so one is asked for all the time.
    globalThis.isMeasuring ??= requestAnimationFrame(function again() { requestAnimationFrame(again) })
  }`)
  await interact()
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))')
  const slow = (await page.evaluate(`slow.map((each) => each.${until}).sort((a, b) => a - b)`)) as number[]
  return slow[Math.floor(slow.length * 0.95)] ?? 0
}

async function heapMb(page: Page): Promise<number> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('HeapProfiler.collectGarbage')
  const { usedSize } = await devtools.send('Runtime.getHeapUsage')
  return usedSize / MB
}

it('stays quick and small with 5,000 entries and with 10 MB of output', { timeout: 300_000 }, async () => {
  const one = await visit(browser, server.url)
  const me = new WorkspacePage(one.page)
  const { page } = me
  await me.composer.waitFor()
  await me.ask('run echo first')
  await me.approve()
  await me.quiet()
  const sessionId = me.sessionId()
  await page.goto('about:blank')
  await server.stop()
  await fill(sessionId)
  server = await servePage(server)
  await page.goto(`${server.url}/#/s/${sessionId}`)
  await me.outputs.last().waitFor()
  // The page opens with the newest entries alone; here it shall have all of them at hand.
  await page.evaluate(`(async () => {
    const session = document.querySelector('#app').__vue_app__.config.globalProperties.$pinia._s.get('session')
    while (session.olderBefore !== null) await session.loadOlder()
  })()`)
  const count = (await page.evaluate(
    `document.querySelector('#app').__vue_app__.config.globalProperties.$pinia.state.value.session.transcript.entries.length`
  )) as number
  expect(count).toBeGreaterThanOrEqual(ENTRIES)

  const figures: Record<string, number> = {}
  figures.typing = await interactionMs(page, () =>
    me.composer.pressSequentially('some words to be typed', { delay: 30 })
  )
  await me.composer.fill('')
  figures.opening = await interactionMs(page, async () => {
    for (let round = 0; round < 3; round++) {
      await me.button('Hide').last().click()
      await me.button('Show output').last().click()
    }
  })
  await page.getByRole('region', { name: 'Messages' }).hover()
  figures.scrolling = await interactionMs(page, async () => {
    for (let round = 0; round < 15; round++) await page.mouse.wheel(0, -3000)
    await me.button('Go to the end').click()
  })
  // The command and the server compete with the browser for the processors here, so the frame is theirs too; the page's part
  // is to be free for the next key.
  const typeDuringOutput = async () => {
    await me.ask('run yes 0123456789 | head -c 10000000')
    await me.approve()
    await me.composer.pressSequentially('typed meanwhile', { delay: 30 })
    await me.composer.fill('')
    await me.quiet()
  }
  figures.typingDuringOutput = await interactionMs(page, typeDuringOutput, 'handled')
  // The demo model quotes the output at length: what is asked for is the call above that.
  await page.getByRole('region', { name: 'Messages' }).hover()
  await expect
    .poll(async () => {
      await page.mouse.wheel(0, -600)
      return me.outputs.getByText('0123456789').count()
    })
    .toBeGreaterThan(0)
  figures.scrollingOutput = await interactionMs(page, async () => {
    await me.button('Taller').last().click()
    await me.outputs.last().hover()
    for (let round = 0; round < 15; round++) await page.mouse.wheel(0, round % 2 ? -3000 : 4000)
    await me.button('Shorter').last().click()
  })
  for (const [name, ms] of Object.entries(figures)) expect(ms, name).toBeLessThan(LIMIT_MS)
  expect((await page.evaluate('document.querySelectorAll("*").length')) as number).toBeLessThan(3000)
  expect(await heapMb(page)).toBeLessThan(80)
  expect(one.offences).toEqual([])
  await one.close()
})
