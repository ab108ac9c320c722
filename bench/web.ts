/** Measures the page: its size, the time until it can be used, and whether it keeps up with a fast model. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../tests/support/browser.ts'
import { FakeServer, type FakeSession } from '../tests/web/fake-server.ts'
import { quantile, timed } from './statistics.ts'

const WEB = join(import.meta.dirname, '../dist/web')
const ROUNDS = 5
const DELTAS_PER_SECOND = 200
const STREAM_SECONDS = 5
const FRAME_MS = 1000 / 60

export async function webFigures(): Promise<object> {
  const fake = await FakeServer.start()
  const browser = await launchBrowser()
  try {
    const firstLoad = await firstLoadBytes(browser, fake.url)
    const usable: number[] = []
    for (let round = 0; round < ROUNDS; round++) usable.push(await usableMs(browser, fake.url))
    return { ...firstLoad, usableMs: Math.round(quantile(usable, 0.5)), streaming: await streaming(browser, fake) }
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

/** Everything that a first visit loads before a message can be written. */
async function firstLoadBytes(browser: Browser, url: string): Promise<object> {
  const page = await browser.newPage()
  const asked = new Set<string>()
  page.on('response', (response) => asked.add(new URL(response.url()).pathname))
  await openPage(page, url)
  await page.close()
  const files = [...asked].filter((path) => path === '/' || /\.(js|css|svg)$/.test(path))
  let bytes = 0
  for (const path of files) bytes += gzipSync(await readFile(join(WEB, path === '/' ? 'index.html' : path))).length
  return { firstLoadGzipBytes: bytes, firstLoadFiles: files.length }
}

/** Time from opening the address to a working composer, with an empty cache. */
async function usableMs(browser: Browser, url: string): Promise<number> {
  const page = await browser.newPage()
  const ms = await timed(() => openPage(page, url))
  await page.close()
  return ms
}

async function streaming(browser: Browser, fake: FakeServer): Promise<object> {
  const page = await browser.newPage()
  await openPage(page, fake.url)
  const id = /#\/s\/(.+)$/.exec(page.url())?.[1] ?? ''
  const idle = await lostFrames(page, () => wait(STREAM_SECONDS * 1000))
  const busy = await lostFrames(page, () => stream(fake.session(id)))
  await page.getByText('told slowly').last().waitFor() // otherwise nothing was streamed
  await page.close()
  return { deltasPerSecond: DELTAS_PER_SECOND, seconds: STREAM_SECONDS, lostFrames: busy, lostFramesIdle: idle }
}

async function stream(session: FakeSession): Promise<void> {
  session.append('user:message', { turnId: 'bench', text: 'Tell me a long story with code.' })
  const words = 'A *story* of `code` and **people**, told slowly. '.split(/(?<= )/)
  const total = DELTAS_PER_SECOND * STREAM_SECONDS
  const started = performance.now()
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.ceil(((performance.now() - started) / 1000) * DELTAS_PER_SECOND))
    for (; sent < due; sent++) {
      const text = sent % 50 === 49 ? '\n\n```js\nlet x = 1\n```\n\n' : (words[sent % words.length] ?? '')
      session.live('agent:delta', { turnId: 'bench', text })
    }
    await wait(2)
  }
}

/** Frames (at 60 per second) that were not drawn while `work` ran. */
async function lostFrames(page: Page, work: () => Promise<void>): Promise<number> {
  await page.evaluate(`{
    globalThis.frames = []
    globalThis.counting = true
    const tick = (at) => { frames.push(at); if (counting) requestAnimationFrame(tick) }
    requestAnimationFrame(tick)
  }`)
  await work()
  const frames = (await page.evaluate('(counting = false, frames)')) as number[]
  return frames.reduce((lost, at, index) => {
    const gap = at - (frames[index - 1] ?? at)
    return lost + Math.max(0, Math.round(gap / FRAME_MS) - 1)
  }, 0)
}
