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
  const lines = (text: string) =>
    me.page
      .getByText(text)
      .last()
      .evaluate((part) => (part as unknown as { getClientRects(): ArrayLike<object> }).getClientRects().length)
  await expect.poll(() => lines('find the needle')).toBe(1)
  const list = await me.page.getByRole('region', { name: 'Messages' }).boundingBox()
  const long = await me.page.getByText('word word').last().boundingBox()
  expect(long?.width).toBeLessThan((list?.width ?? 0) * 0.9)
})
