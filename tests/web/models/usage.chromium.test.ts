/** Tokens, cost and the context are shown: per turn, per session, and before the model can read no more. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()
const priced = { cost: 0.0123, currency: 'USD' }

function turn(session: FakeSession, turnId: string, usage: object): void {
  session.append('user:message', { turnId, text: `Question ${turnId}` })
  session.append('agent:response', { turnId, text: `Answer ${turnId}` })
  session.append('usage', { turnId, inputTokens: 1000, outputTokens: 50, ...usage })
  session.append('turn:end', { turnId, reason: 'done' })
}

it('shows what a turn and the session have used and cost', async () => {
  const { me } = await now().arrive((session) => {
    turn(session, 'a', { cachedTokens: 800, ...priced })
    turn(session, 'b', priced)
  })
  const button = me.page.locator('[data-row]', { hasText: 'Question a' }).getByRole('button', { name: '$0.012' })
  await button.focus()
  await me.page.keyboard.press('Enter')
  await me.page.getByText('$0.012 · 1,000 tokens in (80 % cached), 50 out').waitFor()
  await me.button('Settings').click()
  const menu = me.page.getByRole('group', { name: 'Settings' })
  await menu.getByText('$0.025 for this session, by the prices in the file that MODEL_PRICES names').waitFor()
  await menu.getByText('2,000 tokens in (40 % cached), 100 out').waitFor()
  await menu.getByText('Context: 1,050 of 100,000 tokens').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

it('shows tokens only if nobody has set prices', async () => {
  const { me } = await now().arrive((session) => turn(session, 'a', {}))
  await me.page.locator('[data-row]').getByText('Question a').hover()
  await me.button('Tokens').click()
  await me.page.getByText('1,000 tokens in, 50 out').waitFor()
  expect(await me.page.getByText('$').count()).toBe(0)
  await me.button('Settings').click()
  await me.page.getByText('set MODEL_PRICES to it').waitFor()
})

it('warns when the context is nearly full, and no longer after a fresh start', async () => {
  const { me, session } = await now().arrive((opened) => turn(opened, 'a', { inputTokens: 79_000 }))
  const warning = me.page.getByText('This conversation fills 86 % of what the model gets.')
  expect(await warning.count()).toBe(0)
  turn(session, 'b', { inputTokens: 86_000 })
  await warning.waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  session.append('history:reset', {})
  await warning.waitFor({ state: 'hidden' })
})
