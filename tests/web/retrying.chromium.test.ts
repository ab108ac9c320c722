/** A failed answer is retried and a finished one written anew, by mouse or keyboard; earlier ones stay readable. */
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import { seriousFaults } from './serious-faults.ts'

const now = useFakePage()
const answered = (session: FakeSession) => {
  session.append('user:message', { turnId: 't', text: 'Write a poem.' })
  session.append('agent:response', { turnId: 't', text: 'Roses are red.' })
  session.append('turn:end', { turnId: 't', reason: 'done' })
}
const failed = (session: FakeSession) => {
  session.append('user:message', { turnId: 't', text: 'Write a poem.' })
  session.append('agent:error', { turnId: 't', code: 'model_overloaded', message: 'The model is overloaded.' })
  session.append('turn:end', { turnId: 't', reason: 'error' })
}
const answersWith = (session: FakeSession, text: string) => {
  session.onMessage = (_, turnId) => {
    session.append('agent:response', { turnId, text })
    session.append('turn:end', { turnId, reason: 'done' })
  }
}

it('regenerates the last answer by keyboard, and folds the earlier one', async () => {
  const { me, session } = await now().arrive(answered)
  answersWith(session, 'Violets are blue.')
  await me.button('Regenerate').focus()
  await me.page.keyboard.press('Enter')
  await me.page.getByText('Violets are blue.').waitFor()
  expect(await me.page.getByText('Roses are red.').count()).toBe(0)
  expect(await me.page.evaluate('document.activeElement.id')).toBe('composer')
  await me.button('Earlier answer').click()
  await me.page.getByText('Roses are red.').waitFor()
  await expect.poll(() => me.button('Earlier answer').getAttribute('aria-expanded')).toBe('true')
  expect(await seriousFaults(me.page)).toEqual([])
  await me.page.reload()
  await me.page.getByText('Violets are blue.').waitFor()
  expect(await me.page.getByText('Roses are red.').count()).toBe(0)
  expect(now().offences).toEqual([])
})

it('continues after the token limit with one button, which disappears with its banner', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'Write a poem.' })
    opened.append('agent:error', { turnId: 't', code: 'spending_limit', message: 'It has used up its tokens.' })
    opened.append('turn:end', { turnId: 't', reason: 'spending_limit' })
  })
  session.onCommand = (command) => {
    if (command !== 'limit:raise') return
    session.append('limit:raised', { tokens: 1000 })
    session.append('turn:reopened', { turnId: 'u', of: 't', from: 2 })
  }
  const banner = me.page.getByText('This session has reached its token limit.')
  await banner.waitFor()
  await me.button('Continue').click()
  await banner.waitFor({ state: 'hidden' })
  await me.page.getByText('Thinking…').waitFor()
  session.append('agent:response', { turnId: 'u', text: 'Roses are red.' })
  session.append('turn:end', { turnId: 'u', reason: 'done' })
  await me.button('Regenerate').waitFor()
  await expect.poll(() => banner.count()).toBe(0)
  expect(now().offences).toEqual([])
})

it('offers to retry a failed answer, once, and says why not while there is no connection', async () => {
  const { me, session } = await now().arrive(failed)
  answersWith(session, 'Here it is.')
  const { fake } = now()
  await me.button('Retry').waitFor()
  fake.refuseWith = 'busy'
  fake.breakConnections()
  await me.page.getByText('No connection: you can do this when it is back.').waitFor()
  await expect.poll(() => me.button('Retry').getAttribute('aria-disabled')).toBe('true')
  await me.button('Retry').click({ force: true })
  expect(session.transcript.turnId).toBeNull()
  fake.refuseWith = null
  await me.page.getByText('No connection: you can do this').waitFor({ state: 'hidden' })
  await me.button('Retry').dblclick()
  await me.page.getByText('Here it is.').waitFor()
  await me.button('Earlier error').waitFor()
  expect(session.transcript.turns).toBe(2)
})

it.each(['length', 'step_limit'] as const)(
  'continues an answer that reached its limit with one button: %s',
  async (reason) => {
    const { me, session } = await now().arrive((opened) => {
      opened.append('user:message', { turnId: 't', text: 'Write a poem.' })
      opened.append('agent:response', { turnId: 't', text: 'Roses are' })
      opened.append('turn:end', { turnId: 't', reason })
    })
    answersWith(session, 'red.')
    await me.button('Continue').focus()
    expect(await seriousFaults(me.page)).toEqual([])
    await me.page.keyboard.press('Enter')
    await me.page.getByText('red.', { exact: true }).waitFor()
    expect(session.transcript.entries.map((entry) => 'text' in entry && entry.text)).toEqual([
      ...['Write a poem.', 'Roses are', 'Continue.', 'red.']
    ])
    await me.button('Continue').waitFor({ state: 'hidden' })
    expect(await me.page.evaluate('document.activeElement.id')).toBe('composer')
    expect(now().offences).toEqual([])
  }
)
