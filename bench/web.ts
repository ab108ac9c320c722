/**
 * Measures the page against a budget, as a visitor with a slow phone has it: what is loaded and how long it takes, the memory of a long
 * conversation, and whether it keeps up with a fast model. Needs the page as `npm run build` makes it.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { launchBrowser } from '../tests/support/browser.ts'
import { FakeServer, type FakeSession } from '../tests/web/fake-server.ts'
import { quantile, step, timed } from './statistics.ts'

/** Maximum of each figure. `overBudget` in the result names the figures that are larger. */
const BUDGET = {
  firstPaintMs: 1000,
  usableMs: 2500,
  firstVisitBytes: 110_000,
  secondVisitBytes: 5000,
  memoryMb: 40,
  lostFramesPercent: 10
}
type Figures = Record<keyof typeof BUDGET, number>

const ROUNDS = 5
/** A slow mobile link and a slow phone, as Lighthouse simulates them. */
const SLOW_LINK = {
  offline: false,
  latency: 150,
  downloadThroughput: (1.6 * 1024 * 1024) / 8,
  uploadThroughput: (0.75 * 1024 * 1024) / 8
}
const SLOW_CPU = 4
const MESSAGES = 1000
const DELTAS_PER_SECOND = 200
const STREAM_SECONDS = 5
const FRAME_MS = 1000 / 60
const MB = 2 ** 20

export async function webFigures(): Promise<object> {
  const fake = await FakeServer.start()
  const browser = await launchBrowser()
  try {
    const visits = await step('visits on a slow link', () => slowVisits(browser, fake.url))
    const usableFastMs = await step('visits on a fast link', () => fastVisits(browser, fake.url))
    const memoryMb = await step(`memory after ${MESSAGES} messages`, () => memory(browser, fake))
    const streaming = await step('streaming', () => streamed(browser, fake))
    const { lostFramesPercent } = streaming
    const figures: Figures = { ...visits, memoryMb, lostFramesPercent }
    const names = Object.keys(BUDGET) as (keyof Figures)[]
    const overBudget = names.filter((name) => figures[name] > BUDGET[name])
    return { figures, budget: BUDGET, overBudget, usableFastMs, streaming }
  } finally {
    await browser.close()
    await fake.stop()
  }
}

/** Resolves when a message can be written. */
async function openPage(page: Page, url: string): Promise<void> {
  await page.goto(url, { waitUntil: 'commit' })
  await page.getByRole('textbox', { name: 'Message' }).waitFor()
}

/** Each round is a new visitor, who then comes back. */
async function slowVisits(browser: Browser, url: string) {
  const rounds: { paintMs: number; usableMs: number; bytes: number; secondBytes: number }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const context = await browser.newContext()
    const first = await slowVisit(await context.newPage(), url)
    const second = await slowVisit(await context.newPage(), url)
    rounds.push({ ...first, secondBytes: second.bytes })
    await context.close()
  }
  function median(name: keyof (typeof rounds)[number]): number {
    const values = rounds.map((each) => each[name])
    return Math.round(quantile(values, 0.5))
  }
  return {
    firstPaintMs: median('paintMs'),
    usableMs: median('usableMs'),
    firstVisitBytes: median('bytes'),
    secondVisitBytes: median('secondBytes')
  }
}

/** Measured inside the page, because a slow page answers late when it is asked from outside. */
const WATCH = `requestAnimationFrame(function look() {
  if (!document.querySelector('#composer')) return requestAnimationFrame(look)
  const usableMs = performance.now()
  const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
  globalThis.visit = {
    usableMs,
    paintMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? usableMs,
    bytes: loaded.reduce((sum, { transferSize }) => sum + transferSize, 0)
  }
})`

async function slowVisit(page: Page, url: string) {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Network.enable')
  await devtools.send('Network.emulateNetworkConditions', SLOW_LINK)
  await devtools.send('Emulation.setCPUThrottlingRate', { rate: SLOW_CPU })
  await page.addInitScript(WATCH)
  await openPage(page, url)
  await page.waitForFunction('globalThis.visit')
  const visit = (await page.evaluate('visit')) as { paintMs: number; usableMs: number; bytes: number }
  await page.close()
  return visit
}

async function fastVisits(browser: Browser, url: string): Promise<number> {
  const usable: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const page = await browser.newPage()
    usable.push(await timed(() => openPage(page, url)))
    await page.close()
  }
  return Math.round(quantile(usable, 0.5))
}

/** All messages are loaded; the heap is measured after garbage collection. */
async function memory(browser: Browser, fake: FakeServer): Promise<number> {
  const page = await browser.newPage()
  await openPage(page, fake.url)
  const session = fake.session(idOf(page))
  for (let turn = 0; turn * 2 < MESSAGES; turn++) {
    const turnId = `turn-${turn}`
    session.append('user:message', { turnId, text: `Question ${turn} about *something*` })
    const text = `Answer ${turn} with $x_${turn}$\n\n- a\n- b\n\n\`\`\`js\nlet x = ${turn}\n\`\`\``
    session.append('agent:response', { turnId, text })
    session.append('turn:end', { turnId, reason: 'done' })
  }
  await page.getByText(`Answer ${MESSAGES / 2 - 1} `).waitFor()
  const mb = await heapMb(await page.context().newCDPSession(page))
  await page.close()
  return mb
}

async function heapMb(devtools: CDPSession): Promise<number> {
  await devtools.send('HeapProfiler.collectGarbage')
  const { usedSize } = await devtools.send('Runtime.getHeapUsage')
  return Number((usedSize / MB).toFixed(1))
}

const idOf = (page: Page) => /#\/s\/(.+)$/.exec(page.url())?.[1] ?? ''

async function streamed(browser: Browser, fake: FakeServer) {
  const page = await browser.newPage()
  await openPage(page, fake.url)
  const session = fake.session(idOf(page))
  const idle = await lostFrames(page, () => wait(STREAM_SECONDS * 1000))
  const busy = await lostFrames(page, () => stream(session))
  // Otherwise nothing was streamed, or not as Mermaid and math.
  await page.getByText('told slowly').last().waitFor()
  await page.getByRole('img', { name: 'Diagram: graph' }).first().waitFor()
  await page.locator('.math.is-drawn').first().waitFor()
  await page.close()
  return { deltasPerSecond: DELTAS_PER_SECOND, lostFramesPercent: busy, lostFramesIdlePercent: idle }
}

const WORDS = 'A *story* of `code` and **people**, told slowly. '.split(/(?<= )/)
/** Every 50 words, in turn. */
const BLOCKS = [
  '\n\n```js\nlet x = 1\n```\n\n',
  '\n\nMath: $\\sum_{k=1}^n k = \\frac{n(n+1)}{2}$ and\n\n$$\\int_0^1 x^2\\,dx = \\frac13$$\n\n',
  '\n\n```mermaid\ngraph TD; A-->B; B-->C\n```\n\n',
  '\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n'
]

async function stream(session: FakeSession): Promise<void> {
  session.append('user:message', { turnId: 'bench', text: 'Tell me a long story with code.' })
  const total = DELTAS_PER_SECOND * STREAM_SECONDS
  const started = performance.now()
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.ceil(((performance.now() - started) / 1000) * DELTAS_PER_SECOND))
    for (; sent < due; sent++) {
      const block = sent % 50 === 49 ? BLOCKS[Math.floor(sent / 50) % BLOCKS.length] : undefined
      session.live('agent:delta', { turnId: 'bench', text: block ?? WORDS[sent % WORDS.length] ?? '' })
    }
    await wait(2)
  }
}

/** Percentage of frames (at 60 per second) that were not drawn while `work` ran. */
async function lostFrames(page: Page, work: () => Promise<void>): Promise<number> {
  await page.evaluate(`{
    globalThis.frames = []
    globalThis.counting = true
    const tick = (at) => { frames.push(at); if (counting) requestAnimationFrame(tick) }
    requestAnimationFrame(tick)
  }`)
  await work()
  const frames = (await page.evaluate('(counting = false, frames)')) as number[]
  const due = ((frames.at(-1) ?? 0) - (frames[0] ?? 0)) / FRAME_MS
  const lost = frames.reduce((sum, at, index) => {
    const gap = at - (frames[index - 1] ?? at)
    return sum + Math.max(0, Math.round(gap / FRAME_MS) - 1)
  }, 0)
  return Number(((100 * lost) / due).toFixed(1))
}
