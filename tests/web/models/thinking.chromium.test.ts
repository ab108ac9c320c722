/** The model's reasoning is shown folded above its answer, while it thinks and afterwards, and is never part of the answer. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()
const working = (session: FakeSession) => session.append('user:message', { turnId: 't', text: 'How much is 6 × 7?' })
const THOUGHT = 'The person wants **a product**.\n\nSix times seven is forty-two.'

it('streams the thought folded, and keeps it folded above the answer', async () => {
  const { me, session } = await now().arrive(working)
  session.live('agent:thinking', { turnId: 't' })
  session.live('agent:reasoning', { turnId: 't', text: 'wants a ', at: 11, ms: 900 })
  // A page that connects meanwhile gets it from its beginning, then what follows.
  session.live('agent:reasoning', { turnId: 't', text: THOUGHT.slice(0, 40), at: 0, ms: 1500 })
  session.live('agent:reasoning', { turnId: 't', text: THOUGHT.slice(40), at: 40, ms: 2100 })
  const thought = me.page.getByText('Six times seven is forty-two.')
  await me.button('Show thinking').click()
  await thought.waitFor()
  await expect.poll(() => me.page.locator('.thought strong').textContent()).toBe('a product')
  const whole = /thinking\s+The person wants a product\.\s+Six times seven is forty-two\.$/
  await expect.poll(() => me.read(me.page.locator('.thought'))).toMatch(whole)
  session.live('agent:delta', { turnId: 't', text: 'It is 42.' })
  await me.page.getByText('It is 42.').waitFor()
  session.append('agent:response', { turnId: 't', text: 'It is 42.', reasoning: THOUGHT, reasoningMs: 12_300 })
  session.append('turn:end', { turnId: 't', reason: 'done' })
  const fold = me.button('Thought for 12 s')
  await fold.waitFor()
  await expect.poll(() => fold.getAttribute('aria-expanded')).toBe('false')
  await expect.poll(() => thought.count()).toBe(0)
  await me.page.reload()
  await fold.focus()
  await me.page.keyboard.press('Enter')
  await thought.waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
  expect(now().offences).toEqual([])
})

it('copies the answer without the thought, and shows a step that only thought before a call', async () => {
  const { me, session } = await now().arrive(working, { permissions: ['clipboard-read', 'clipboard-write'] })
  session.append('agent:response', { turnId: 't', text: '', reasoning: 'I need a tool.', reasoningMs: 400 })
  await me.button('Thought for 400 ms').waitFor()
  expect(await me.button('Copy the answer').count()).toBe(0)
  session.append('agent:response', { turnId: 't', text: 'It is 42.', reasoning: THOUGHT, reasoningMs: 12_300 })
  session.append('turn:end', { turnId: 't', reason: 'done' })
  await me.button('Thought for 12 s').click()
  await me.page.getByText('It is 42.').hover()
  await me.button('Copy the answer').click()
  await expect.poll(() => me.page.evaluate('navigator.clipboard.readText()')).toBe('It is 42.')
})
