/** How messages are set. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'

const now = useFakePage()

// Seen before: a message got 85 % of the width that it needs, so every message wrapped.
it('sets a message in one line if there is room for it, and leaves a margin beside a long one', async () => {
  const { me } = await now().arrive((session) => {
    session.append('user:message', { turnId: 't', text: 'find the needle in the hay' })
    session.append('user:message', { turnId: 'u', text: 'word '.repeat(200) })
  })
  const lines = async (text: string) => {
    const words = me.page.getByText(text).last()
    const { height = 0 } = (await words.boundingBox()) ?? {}
    const lineHeight = await me.page.evaluate(
      `parseFloat(getComputedStyle(document.querySelector('[aria-label=Messages] .bg-accent-soft')).lineHeight)`
    )
    return Math.round(height / Number(lineHeight))
  }
  await expect.poll(() => lines('find the needle')).toBe(1)
  expect(await lines('word word')).toBeGreaterThan(1)
  const list = await me.page.getByRole('region', { name: 'Messages' }).boundingBox()
  const long = await me.page.getByText('word word').last().boundingBox()
  expect(long?.width).toBeLessThan((list?.width ?? 0) * 0.9)
})

it('sets each message in the direction of its text, also while it is written, and copies it', async () => {
  const { me } = await now().arrive((session) => {
    session.append('user:message', { turnId: 't', text: 'שלום עולם' })
    session.append('turn:end', { turnId: 't', reason: 'done' })
    session.append('user:message', { turnId: 'u', text: 'hello' })
    session.append('turn:end', { turnId: 'u', reason: 'done' })
  })
  const { page } = me
  const directionOf = (text: string) =>
    page.evaluate(`{
      const parts = [...document.querySelectorAll('[aria-label=Messages] *')].filter((part) => part.textContent === '${text}')
      const look = getComputedStyle(parts.at(-1))
      look.direction + ' ' + look.textAlign + ' ' + look.display
    }`)
  await expect.poll(() => directionOf('שלום עולם')).toBe('rtl start block')
  expect(await directionOf('hello')).toBe('ltr start block')
  const direction = () => page.evaluate(`getComputedStyle(document.querySelector('#composer')).direction`)
  await me.composer.fill('مرحبا')
  expect(await direction()).toBe('rtl')
  await me.composer.fill('hi')
  expect(await direction()).toBe('ltr')
  await page.evaluate('navigator.clipboard.writeText = async (text) => { window.copied = text }')
  await page.getByText('hello', { exact: true }).hover()
  await me.button('Copy the message').last().click()
  expect(await page.evaluate('copied')).toBe('hello')
})
