/** Checks a view or dialog for everyone: in light and dark, by keyboard alone, by finger, and enlarged to 200 %. */
import axe from 'axe-core'
import type { CDPSession, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { WorkspacePage } from '../workspace-page.ts'

export const NORMAL = { width: 1280, height: 800 }
/** The viewport of a window of 1280 × 800 at a zoom of 200 %. */
export const ENLARGED = { width: 640, height: 400 }
const SETTLE_MS = 10_000

/** Everything that axe finds, however small. */
async function faults(page: Page, theme: 'light' | 'dark'): Promise<string[]> {
  await page.evaluate(`document.documentElement.dataset.theme = '${theme}'`)
  if (await page.evaluate('typeof axe === "undefined"')) await page.evaluate(axe.source)
  // Only the colours differ in the dark.
  const only = theme === 'dark' ? `{ runOnly: ['color-contrast'] }` : '{}'
  const { violations } = (await page.evaluate(`axe.run(document, ${only})`)) as axe.AxeResults
  return violations.map(({ id, nodes }) => `${theme}: ${id} ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`)
}

/** In the open dialog, if there is one. Without links in a sentence, and with the label of a box as its place. */
const TARGETS = `
  const top = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document
  const targets = [...top.querySelectorAll('button, a[href], input:not([type=file]), select, textarea, summary')].filter(
    (part) => part.checkVisibility({ checkVisibilityCSS: true }) && !part.disabled && getComputedStyle(part).display !== 'inline' && !part.closest('.markdown, .sr-only, .skip-link')
  )
  const words = (part) => part.ariaLabel || part.labels?.[0]?.innerText || part.innerText || part.tagName`

/** Targets that are too small for a finger. */
async function tooSmall(page: Page, devtools: CDPSession): Promise<string[]> {
  await devtools.send('Emulation.setTouchEmulationEnabled', { enabled: true, maxTouchPoints: 1 })
  const found = (await page.evaluate(`(() => {${TARGETS}
    return matchMedia('(pointer: coarse)').matches ? targets.flatMap((part) => {
      const place = part.type === 'checkbox' || part.type === 'radio' ? (part.closest('label') ?? part) : part
      const { width, height } = place.getBoundingClientRect()
      return width < 43.5 || height < 43.5 ? [words(part) + ' ' + Math.round(width) + '×' + Math.round(height)] : []
    }) : ['no finger']
  })()`)) as string[]
  await devtools.send('Emulation.setTouchEmulationEnabled', { enabled: false })
  return found.map((each) => `by finger: ${each}`)
}

/** Targets that Tab does not reach. A group of radio buttons is one tab stop. */
async function unreached(page: Page): Promise<string[]> {
  const count = (await page.evaluate(`(() => {${TARGETS}
    globalThis.missed = new Set(targets.filter((part) => part.type !== 'radio' && part.tabIndex >= 0))
    document.activeElement?.blur()
    return missed.size
  })()`)) as number
  for (let step = 0; step < 2 * count + 20; step++) {
    await page.keyboard.press('Tab')
    const left = await page.evaluate('missed.delete(document.activeElement), missed.size')
    if (left === 0) break
  }
  return (await page.evaluate(`(() => {${TARGETS}
    return [...missed].map((part) => 'by keyboard: ' + words(part))
  })()`)) as string[]
}

/** Targets that leave the screen sideways, or have no room left, at 200 %. */
async function enlarged(page: Page): Promise<string[]> {
  await page.setViewportSize(ENLARGED)
  const look = async () =>
    (await page.evaluate(`(() => {${TARGETS}
    return targets.flatMap((part) => {
      part.scrollIntoView({ block: 'nearest', inline: 'nearest' })
      const { left, right, top, bottom } = part.getBoundingClientRect()
      const isSeen = left >= -1 && right <= innerWidth + 1 && bottom > 0 && top < innerHeight
      return isSeen || part.closest('.overflow-x-auto') ? [] : ['at 200 %: ' + words(part)]
    })
  })()`)) as string[]
  const found = await settled(look)
  await page.setViewportSize(NORMAL)
  return found
}

/** One h1, and no level left out below it. */
async function outline(page: Page): Promise<string[]> {
  const levels = (await page.evaluate(
    `[...document.querySelectorAll('h1, h2, h3, h4')].filter((each) => each.checkVisibility() && !each.closest('.markdown, dialog')).map(({ tagName }) => Number(tagName[1]))`
  )) as number[]
  const ones = levels.filter((level) => level === 1).length
  return ones === 1 ? [] : [`${ones} main headings: ${levels.join(' ')}`]
}

/** A page that is still being drawn gets time: only what stays wrong counts. */
async function settled(look: () => Promise<string[]>): Promise<string[]> {
  const until = Date.now() + SETTLE_MS
  for (;;) {
    const found = await look()
    if (found.length === 0 || Date.now() > until) return found
  }
}

export async function check(me: WorkspacePage, devtools: CDPSession, view: string): Promise<void> {
  const found = [
    ...(await settled(() => faults(me.page, 'dark'))),
    ...(await settled(() => faults(me.page, 'light'))),
    ...(await settled(() => outline(me.page))),
    ...(await settled(() => unreached(me.page))),
    ...(await settled(() => tooSmall(me.page, devtools))),
    ...(await enlarged(me.page))
  ]
  expect.soft(found, view).toEqual([])
}
