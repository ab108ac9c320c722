/** Nobody ends a turn, or the calls that wait in it, by accident. */
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import { seriousFaults } from './serious-faults.ts'
import type { WorkspacePage } from './workspace-page.ts'

const now = useFakePage()
const working = (session: FakeSession) => session.append('user:message', { turnId: 't', text: 'go' })
const asking = (session: FakeSession) => {
  working(session)
  session.ask('t', [{ callId: 'a', name: 'execute_command', args: { command: 'make' } }])
}
const dialog = ({ page }: WorkspacePage) => page.getByRole('dialog', { name: 'Stop this turn?' })
const prompt = ({ page }: WorkspacePage) => page.getByRole('alert').filter({ hasText: 'Stop this turn?' })
const ended = ({ transcript }: FakeSession) => transcript.lastTurnEnd?.reason

async function stopClock({ page }: WorkspacePage): Promise<void> {
  await page.clock.install()
  await page.clock.pauseAt(Date.now() + 10_000)
}

// Checked: if a second Escape stops, the waiting call is cancelled.
it('asks in a dialog before Escape cancels calls that wait, and only its button cancels them', async () => {
  const { me, session } = await now().arrive(asking)
  await me.cards.first().waitFor()
  for (let round = 0; round < 2; round++) {
    await me.page.keyboard.press('Escape')
    await dialog(me).getByText('1 call that needs your approval will be cancelled').waitFor()
    if (round === 0) expect(await seriousFaults(me.page)).toEqual([])
    await me.page.keyboard.press('Escape')
    await dialog(me).waitFor({ state: 'hidden' })
  }
  await me.page.evaluate('fetch("/healthz")')
  expect(session.transcript.turnId).toBe('t')
  await me.stopByKeyboard()
  await expect.poll(() => ended(session)).toBe('cancelled')
  await dialog(me).waitFor({ state: 'hidden' })
  expect(now().offences).toEqual([])
})

// Seen before: the queued message was sent as soon as the turn was stopped.
it('gives queued messages back as a draft when the turn is stopped, and says so before', async () => {
  const { me, session } = await now().arrive(asking)
  await me.say('and then')
  await me.page.getByText('Queued: and then').waitFor()
  await me.page.keyboard.press('Escape')
  await dialog(me).getByText('Your queued message becomes a draft again.').waitFor()
  await me.stopByKeyboard()
  await expect.poll(() => ended(session)).toBe('cancelled')
  await expect.poll(() => me.composer.inputValue()).toBe('and then')
  expect(session.transcript.entries.filter(({ kind }) => kind === 'user')).toHaveLength(1)
})

// Seen before: two quick presses were taken for one, though the question says “Press Esc again”.
it('a second Escape stops, however quick it is, but not a held key, nor an Escape after a click or another key', async () => {
  const { me, session } = await now().arrive(working)
  await me.button(/^Stop/).first().waitFor()
  await stopClock(me)
  // Held down, it is one Escape.
  for (const key of ['Escape', 'Escape', 'Escape']) await me.page.keyboard.down(key)
  await me.page.keyboard.up('Escape')
  await prompt(me).waitFor()
  for (const away of [
    () => me.page.getByRole('region', { name: 'Messages' }).click(),
    () => me.page.keyboard.type('x')
  ]) {
    await away()
    await me.page.clock.runFor(1100)
    await prompt(me).waitFor({ state: 'hidden' })
    await me.page.keyboard.press('Escape')
    await prompt(me).waitFor()
  }
  await me.page.clock.runFor(10_000)
  await prompt(me).waitFor({ state: 'hidden' })
  await me.page.keyboard.press('Escape')
  await prompt(me).waitFor()
  await me.page.evaluate('fetch("/healthz")')
  expect(session.transcript.turnId).toBe('t')
  await me.page.keyboard.press('Escape')
  await expect.poll(() => ended(session)).toBe('cancelled')
})

// Checked: if Stop cancels at once, the waiting call is gone.
it('asks before the Stop button cancels calls that wait', async () => {
  const { me, session } = await now().arrive(asking)
  const stop = me.page.locator('form').getByRole('button', { name: 'Stop' })
  await stop.click()
  await dialog(me).getByRole('button', { name: 'Don’t stop' }).click()
  await dialog(me).waitFor({ state: 'hidden' })
  expect(session.transcript.turnId).toBe('t')
  await stop.click()
  await dialog(me).getByRole('button', { name: 'Stop the turn' }).click()
  await expect.poll(() => ended(session)).toBe('cancelled')
})

it('ignores a click on Stop within a second of Send, and shows no error if the turn has ended meanwhile', async () => {
  const { me, session } = await now().arrive()
  await me.composer.fill('do it')
  await stopClock(me)
  await me.button('Send').click()
  const stop = me.page.locator('form').getByRole('button', { name: 'Stop' })
  await stop.waitFor()
  await me.page.clock.runFor(900)
  expect(await stop.getAttribute('aria-disabled')).toBe('true')
  await stop.click({ force: true })
  await me.page.evaluate('fetch("/healthz")')
  expect(session.transcript.turnId).not.toBeNull()
  const turnId = session.transcript.turnId ?? ''
  session.append('turn:end', { turnId, reason: 'done' }, { isLost: true })
  await me.page.clock.runFor(2000)
  await stop.click()
  await me.page.evaluate('fetch("/healthz")')
  await me.page.clock.runFor(100)
  expect(await me.page.getByText('There is nothing to stop').count()).toBe(0)
})

it('says that the command which runs now is cut off by a stop', async () => {
  const { me, session } = await now().arrive((opened) => {
    working(opened)
    const calls = ['a', 'b'].map((callId) => ({ callId, name: 'execute_command', args: { command: 'make' } }))
    opened.ask('t', calls)
    opened.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
    opened.append('tool:started', { callId: 'a' })
  })
  await me.cards.first().waitFor()
  await me.page.keyboard.press('Escape')
  await dialog(me).getByText('The command that runs now will be cut off.').waitFor()
  await dialog(me).getByText('1 call that needs your approval will be cancelled').waitFor()
  await me.page.keyboard.press('Escape')
  session.append('tool:approval_resolved', { callId: 'b', approved: false, by: 'human' })
  await me.cards.first().waitFor({ state: 'hidden' })
  await me.page.keyboard.press('Escape')
  await prompt(me).getByText('The command that runs now will be cut off.').waitFor()
})

it('shows an answer from its beginning to a page that connects while it is streamed, and what was said when it is stopped', async () => {
  const { me, session } = await now().arrive(working)
  const said = (text: string) => me.page.getByRole('region', { name: 'Messages' }).getByText(text, { exact: true })
  session.live('agent:delta', { turnId: 't', text: 'in the middle' })
  await said('in the middle').waitFor()
  session.live('agent:text', { turnId: 't', text: 'Once upon a time, in the middle' })
  session.live('agent:delta', { turnId: 't', text: ' of' })
  await said('Once upon a time, in the middle of').waitFor()
  session.append('agent:response', { turnId: 't', text: 'Once upon a time, in the middle of', partial: 'stopped' })
  session.append('turn:end', { turnId: 't', reason: 'cancelled' })
  await said('Stopped: this is what the model had written.').waitFor()
  await expect.poll(() => said('Once upon a time, in the middle of').count()).toBe(1)
  expect(await seriousFaults(me.page)).toEqual([])
  await me.page.screenshot({ path: `${process.env.TMPDIR ?? '/tmp'}/partial.png` })
})
