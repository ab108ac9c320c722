/** The page leaves people where they are, and says what waits and what they have just done. */
import { expect, it } from 'vitest'
import { PHONE } from '../support/browser.ts'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'

const now = useFakePage()
const run = (callId: string) => ({ callId, name: 'execute_command', args: { command: `echo ${callId}` } })
const asking =
  (...callIds: string[]) =>
  (session: FakeSession) => {
    session.append('user:message', { turnId: 't', text: 'go on' })
    session.ask('t', callIds.map(run))
  }
const FOCUSED = 'document.activeElement.id'

it('stays where the person reads when another tab sends and decides, and says that there is news below', async () => {
  const { me, session } = await now().arrive((opened) => {
    for (let turn = 0; turn < 60; turn++) {
      opened.append('user:message', { turnId: `t${turn}`, text: `message ${turn}` })
      opened.append('turn:end', { turnId: `t${turn}`, reason: 'done' })
    }
    asking('a')(opened)
  })
  await me.cards.first().waitFor()
  await me.page.getByRole('region', { name: 'Messages' }).hover()
  const top = () => me.page.evaluate('document.querySelector("[aria-label=Messages]").scrollTop')
  const before = await top()
  await me.page.mouse.wheel(0, -1500)
  await expect.poll(top).not.toBe(before)
  let place = await top()
  const isStill = async () => {
    const earlier = place
    place = await top()
    return place === earlier
  }
  await expect.poll(isStill, { interval: 200 }).toBe(true)
  session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
  session.append('turn:end', { turnId: 't', reason: 'done' })
  session.append('user:message', { turnId: 'other', text: 'from another tab' })
  await me.button('New messages').waitFor()
  expect(Math.abs(Number(await top()) - Number(place))).toBeLessThan(100)
  await me.button('New messages').click()
  await me.page.getByText('from another tab').waitFor()
})

// Seen before: both were gone without a question, and the heading named the command from before the edit.
it('keeps an edit and a reason through a reload and a change of the session', async () => {
  const { me, session } = await now().arrive(asking('a', 'b'))
  const card = (id: string) => me.page.locator(`[data-call="${id}"]`)
  const ready = me.page.locator('[aria-disabled=false]')
  const edit = card('a').getByRole('textbox', { name: 'command' })
  const reason = card('b').getByRole('textbox', { name: /Reason/ })
  await card('a').getByRole('button', { name: /^Edit/ }).and(ready).click()
  await edit.fill('echo edited')
  await card('a').getByText('Run echo edited').waitFor()
  await card('b')
    .getByRole('button', { name: /^Reject/ })
    .and(ready)
    .click()
  await reason.fill('not now')
  for (const leave of [
    () => me.page.reload(),
    async () => {
      await me.button('New session').first().click()
      await expect.poll(() => me.sessionId()).not.toBe(session.id)
      await me.page.goBack()
    }
  ]) {
    await leave()
    await expect.poll(() => edit.inputValue()).toBe('echo edited')
    await expect.poll(() => reason.inputValue()).toBe('not now')
  }
  await card('a').getByRole('button', { name: 'Approve with changes' }).and(ready).click()
  await expect.poll(() => session.transcript.calls.a?.decision?.editedArgs).toEqual({ command: 'echo edited' })
  const kept = 'JSON.stringify(sessionStorage)'
  await expect.poll(() => me.page.evaluate(kept)).not.toContain('echo edited')
  expect(await me.page.evaluate(kept)).toContain('not now')
})

it('says that a tool is always allowed from now on, and how that ends', async () => {
  const { me, session } = await now().arrive(asking('a'))
  await me.button(/^Always allow/).click()
  await me.alwaysAllow()
  await me.page.getByText('You always allowed execute_command in this session.').waitFor()
  expect(Object.keys(session.transcript.allowed)).toHaveLength(1)
})

it('does not take an Enter right after R as a rejection', async () => {
  const { me, session } = await now().arrive(asking('a'))
  await me.page.keyboard.press('Alt+p')
  await me.page.locator('.approval-card:focus [data-approve][aria-disabled=false]').waitFor()
  await me.page.clock.install()
  await me.page.clock.pauseAt(Date.now() + 10_000)
  await me.page.keyboard.press('r')
  const reason = me.page.getByRole('textbox', { name: /Reason/ })
  await reason.waitFor()
  for (const key of ['Enter', 'x', 'Enter']) {
    await me.page.clock.runFor(100)
    await me.page.keyboard.press(key)
  }
  await me.page.evaluate('fetch("/healthz")')
  expect(session.transcript.calls.a?.decision).toBeUndefined()
  await me.page.getByText('That Enter came too early, so nothing was decided.').waitFor()
  await me.page.clock.runFor(1100)
  await me.page.keyboard.press('Enter')
  await expect.poll(() => session.transcript.calls.a?.decision).toMatchObject({ approved: false, reason: 'x' })
})

it('updates the sentence about a file with the comparison, and shows no outdated number of calls', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'go' })
    const target = { path: '/workspace/f.txt', is: 'new' as const }
    opened.ask('t', [{ callId: 'w', name: 'write_file', args: { path: 'f.txt', content: 'new' }, target }, run('a')])
  })
  const card = me.page.locator('[data-call="w"]')
  await card.getByText('New file').waitFor()
  const announced = () => me.page.locator('body > div > [aria-live]').textContent()
  await expect.poll(announced).toBe('2 tool calls need your approval.')
  now().fake.files.set('f.txt', Buffer.from('old text'))
  session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
  session.append('tool:result', { callId: 'a', isError: false, content: [{ type: 'text', text: 'done' }] })
  await card.getByText('Changes the file').waitFor()
  await card.getByText('Overwrites').waitFor()
  await card.getByText('New file').waitFor({ state: 'detached' })
  await expect.poll(() => announced()).toBe('')
})

it('says before sessions are deleted how many calls wait in them', async () => {
  const { me } = await now().arrive(asking('a', 'b'))
  await me.cards.first().waitFor()
  await me.button('Delete all sessions').dblclick()
  const all = me.page.getByRole('dialog', { name: 'Delete all sessions?' })
  await all.getByText('1 session, with its conversation and files, will be gone for good.').waitFor()
  await all.getByText('2 calls that need your approval will be cancelled').waitFor()
})

it('keeps the keyboard in the message after Send, and after calls of a list are approved', async () => {
  const { me, session } = await now().arrive()
  await me.composer.fill('do it')
  await me.button('Send').click()
  await expect.poll(() => session.transcript.turnId).not.toBeNull()
  await expect.poll(() => me.page.evaluate(FOCUSED)).toBe('composer')
  await expect.poll(() => me.page.getByRole('heading', { level: 1 }).count()).toBe(1)
  await me.say('later')
  await me.button('Take back').click()
  await expect.poll(() => me.page.evaluate(FOCUSED)).toBe('composer')
  session.ask(session.transcript.turnId ?? '', [run('a'), run('b')])
  await me.button('Approve all 2').click()
  await me.approveListed()
  await me.page.getByRole('dialog').waitFor({ state: 'hidden' })
  await expect.poll(() => me.page.evaluate(FOCUSED)).toBe('composer')
})

it('opens no second empty session, and shows the menu of a session whole', async () => {
  const { me } = await now().arrive()
  const id = me.sessionId()
  for (let round = 0; round < 3; round++) await me.button('New session').first().click()
  await me.page.evaluate('fetch("/healthz")')
  expect(me.sessionId()).toBe(id)
  expect(now().fake.sessions.size).toBe(1)
  await me.say('hello')
  await me.button(/^More for hello/).click()
  const menu = await me.page.getByRole('group', { name: /^More for hello/ }).boundingBox()
  expect(menu?.x).toBeGreaterThanOrEqual(0)
})

const RESTARTED =
  'The server was stopped or restarted while this ran. It may have run in part, in full or not at all, and was not run again.'

type Result = Omit<Parameters<FakeSession['append']>[1], 'callId'>
/** Each call with a result, all approved; without one it still runs. */
const ended = (results: Record<string, Result | null>) => (session: FakeSession) => {
  session.append('user:message', { turnId: 't', text: 'go' })
  session.ask('t', Object.keys(results).map(run))
  for (const [callId, result] of Object.entries(results)) {
    session.append('tool:approval_resolved', { callId, approved: true, by: 'human' })
    session.append('tool:started', { callId })
    if (result) session.append('tool:result', { isError: false, content: [], ...result, callId })
  }
}

// Checked: without the question, one click allows the tool for the whole session.
it('asks before it always allows a tool, also for one call, and the row says “Always allowed”', async () => {
  const { me, session } = await now().arrive(asking('a'))
  await me.button(/^Always allow/).click()
  const dialog = me.page.getByRole('dialog', { name: 'Always allow execute_command?' })
  await dialog.getByText('This call runs now.').waitFor()
  expect(session.answers).toEqual([])
  await dialog.getByRole('button', { name: 'Always allow' }).and(me.page.locator('[aria-disabled=false]')).click()
  await me.page.getByText('You always allowed execute_command in this session.').waitFor()
  await me.page.getByText('Always allowed in this session', { exact: true }).first().waitFor()
  expect(await me.page.getByText('You approved it').count()).toBe(0)
})

it('keeps “Always allow” away from Reject on a phone', async () => {
  const { me } = await now().arrive(asking('a'), { viewport: PHONE })
  // The card may still be scrolled into sight between two looks.
  const areApart = async () => {
    const [reject, edit, always] = await Promise.all(
      [/^Reject/, /^Edit/, /^Always allow/].map((name) => me.button(name).first().boundingBox())
    )
    if (!reject || !edit || !always) return false
    return edit.y > reject.y + 20 && always.y > edit.y + 20
  }
  await expect.poll(areApart).toBe(true)
})

it.each([
  ['a wide page', { width: 1440, height: 900 }],
  ['a phone', PHONE]
])('wraps our own sentence about a call, and names the tool: %s', async (_name, viewport) => {
  const content = [{ type: 'text', text: RESTARTED }]
  const long = 'x'.repeat(400)
  const { me } = await now().arrive(
    ended({
      a: { isError: true, outcome: 'unknown', interruptedBy: 'server', content },
      b: { content: [{ type: 'text', text: long }] }
    }),
    { viewport }
  )
  const note = me.page.getByText(RESTARTED)
  await note.waitFor()
  const box = await note.boundingBox()
  expect((box?.x ?? 0) + (box?.width ?? 9999)).toBeLessThanOrEqual(viewport.width)
  expect(box?.height).toBeGreaterThan(30)
  await me.page.locator('.console-row').getByText(long).waitFor()
  await expect.poll(() => me.page.locator('code').getByText('execute_command').first().isVisible()).toBe(true)
})

it('shows a check mark only on a call that succeeded', async () => {
  const ending = { exitCode: 2, signal: null, timedOut: false, durationMs: 5 }
  const { me } = await now().arrive(
    ended({
      good: {},
      stopped: { isError: true, interruptedBy: 'person' },
      unknown: { isError: true, outcome: 'unknown' },
      failed: { isError: true },
      exited: { ending, content: [{ type: 'text', text: '[exit code 2, 5 ms]' }] },
      running: null
    })
  )
  await me.page.getByText('Outcome unknown').waitFor()
  const marks = `[...document.querySelectorAll('[data-mark]')].map((each) => each.dataset.mark)`
  await expect.poll(() => me.page.evaluate(marks)).toEqual(['good', 'unsure', 'unsure', 'bad', 'bad', 'running'])
})
