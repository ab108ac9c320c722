/** Tests what the page shows and announces when something is missing or refused. The person can always go on. */
import { expect, it } from 'vitest'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import type { WorkspacePage } from './workspace-page.ts'

const now = useFakePage()

it('reloads the page once when a part of it is gone from the server; after that it says so', async () => {
  const { me } = await now().arrive()
  const dialog = me.page.getByRole('dialog', { name: 'Waiting for you' })
  const missing = me.page.getByText('could not be loaded')
  await me.page.route('**/assets/InboxDialog*.js', (route) => route.fulfill({ status: 404 }))
  await me.composer.fill('half a thought')
  const reloaded = me.page.waitForEvent('load')
  await me
    .button(/^Waiting for you/)
    .first()
    .click()
  await reloaded
  await me.composer.waitFor()
  await expect.poll(() => me.composer.inputValue()).toBe('half a thought')
  await me
    .button(/^Waiting for you/)
    .first()
    .click()
  await missing.waitFor()
  await me.page.unroute('**/assets/InboxDialog*.js')
  await me.page.reload()
  await me
    .button(/^Waiting for you/)
    .first()
    .click()
  await dialog.waitFor()
})

it('says so without a reload while something is being written that would be lost', async () => {
  const { me } = await now().arrive()
  await me.page.goto(`${now().fake.url}/#/activity`)
  const field = me.page.getByRole('textbox', { name: 'Tool' })
  await field.fill('half a na')
  await me.page.route('**/assets/InboxDialog*.js', (route) => route.fulfill({ status: 404 }))
  await me
    .button(/^Waiting for you/)
    .first()
    .click()
  await me.page.getByText('could not be loaded').waitFor()
  await expect.poll(() => field.inputValue()).toBe('half a na')
})

it('says that a part could not be loaded while the server is away', async () => {
  const { me } = await now().arrive()
  await me.page.route(/assets\/InboxDialog.*js|healthz/, (route) => route.abort())
  await me
    .button(/^Waiting for you/)
    .first()
    .click()
  await me.page.getByText('could not be loaded').waitFor()
})

it('shows why a session is refused above a page that can still be used', async () => {
  const { me } = await now().arrive()
  const before = me.sessionId()
  await me.say('of the first')
  now().fake.refuseWith = 'too_many_sessions'
  await me.button('New session').first().click()
  await me.page.getByText('You may not come in.').waitFor()
  await me.button(/^of the first/).waitFor()
  await me.page.getByText('Reconnecting').first().waitFor({ state: 'detached' })
  now().fake.refuseWith = null
  await me.page.getByText('You may not come in.').waitFor({ state: 'hidden' })
  await expect.poll(() => me.sessionId()).not.toBe(before)

  now().fake.refuseWith = 'too_many_sessions'
  await me.page.evaluate('localStorage.clear()')
  await me.page.goto('about:blank')
  await me.page.goto(now().fake.url)
  await me.page.getByText('You may not come in.').waitFor()
  await me.button(/^of the first/).waitFor()
})

it('asks for a health report only until it has arrived', async () => {
  const gate = Promise.withResolvers<void>()
  const report = Promise.withResolvers<void>()
  now().fake.gate = gate.promise
  const me = await now().open('about:blank')
  let asked = 0
  await me.page.route('**/readyz', async (route) => {
    asked += 1
    await report.promise
    await route.fulfill({ json: { ok: true } })
  })
  await me.page.clock.install()
  await me.page.goto(now().fake.url)
  await me.page.getByText('Preparing').waitFor()
  await me.page.clock.fastForward(3000)
  await expect.poll(() => asked).toBe(1)
  gate.resolve()
  await me.composer.waitFor()
  const answered = me.page.waitForResponse('**/readyz')
  report.resolve()
  await (await answered).finished()
  await me.page.clock.fastForward(6000)
  await me.page.evaluate(`fetch('/healthz')`)
  expect(asked).toBe(1)
})

it('tells a screen reader of every call that waits, of the answer, and of an error once', async () => {
  const { me } = await now().arrive()
  const session = now().fake.session(me.sessionId())
  await me.page.evaluate(`{
    globalThis.heard = []
    const region = document.querySelector('.sr-only[aria-live]')
    const note = () => region.textContent && heard.push(region.textContent)
    new MutationObserver(note).observe(region, { childList: true, characterData: true, subtree: true })
  }`)
  const heard = (...texts: string[]) => expect.poll(() => me.page.evaluate('heard')).toEqual(texts)
  const waits = '1 tool call needs your approval.'
  session.append('user:message', { turnId: 't', text: 'go' })
  session.ask('t', [{ callId: 'a', name: 'read_file', args: {} }])
  await heard(waits)
  session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
  session.append('tool:result', { callId: 'a', isError: false, content: [] })
  session.ask('t', [{ callId: 'b', name: 'read_file', args: {} }])
  await heard(waits, waits)
  session.append('tool:approval_resolved', { callId: 'b', approved: true, by: 'human' })
  session.append('agent:response', { turnId: 't', text: 'done' })
  session.append('turn:end', { turnId: 't', reason: 'done' })
  const answer = 'The answer is complete.'
  await heard(waits, waits, answer)
  session.append('user:message', { turnId: 'u', text: 'go' })
  session.append('turn:end', { turnId: 'u', reason: 'done' })
  await heard(waits, waits, answer, answer)
  session.append('agent:error', { code: 'model_failed', message: 'The model is away.' })
  await heard(waits, waits, answer, answer, 'The model is away.')
  // A row that is drawn again when it comes into sight would be read out again.
  expect(await me.page.locator('[data-row] [role=alert]').count()).toBe(0)
})

// Seen before: a toast lay on the banner, and so did the drawer of a phone.
it.each([
  ['a wide page', { width: 1280, height: 800 }],
  ['a phone', { width: 360, height: 640 }]
])('says that the connection is lost where nothing covers it: %s', async (_name, viewport) => {
  const { me } = await now().arrive(() => {}, { viewport })
  now().fake.gate = new Promise(() => {})
  now().fake.breakConnections()
  const banner = me.page.getByText('The connection to the server is lost')
  await banner.waitFor()
  if (viewport.width < 1000) await me.button('Show the sessions').click()
  const list = me.page.getByRole('navigation', { name: 'Sessions' })
  await me.page.route('**/api/sessions*', (route) => route.abort())
  // The page can't ask how many sessions there are, so it says that and deletes nothing.
  await list.getByText('Delete all sessions').click()
  await me.page.getByText('cannot be reached right now').waitFor()
  await me
    .button(/^Waiting for you/)
    .first()
    .evaluate((button: { click(): void }) => button.click())
  await me.page.getByRole('dialog', { name: 'Waiting for you' }).waitFor()
  const isCovered = `[...document.querySelectorAll('[role=alert]')].filter(({ innerText }) => /is lost/.test(innerText)).map((banner) => {
    const { left, right, top, bottom } = banner.getBoundingClientRect()
    return [...document.querySelectorAll('[role=alert], dialog, .drawer')].filter((other) => other !== banner).some((other) => {
      const box = other.getBoundingClientRect()
      return box.width > 0 && box.left < right && box.right > left && box.top < bottom && box.bottom > top
    })
  })`
  await expect.poll(() => me.page.evaluate(isCovered)).toEqual([false])
})

// Seen before: only a line of the build's log was shown, and it stayed after a reconnect.
it('says in banner, header, chat and card that the sandbox image is being built, and when it works', async () => {
  const { me, session } = await now().arrive()
  await me.say('go')
  session.live('session:state', { sandbox: 'none', recycleInMs: null, network: 'none' })
  session.live('system:progress', { stage: 'image', message: 'Step 8/15 : WORKDIR /workspace' })
  const being = me.page.getByText('The sandbox image is being built (step 8 of 15).')
  await expect.poll(() => being.count()).toBe(2)
  await me.page.getByText('You can chat, but calls in the sandbox don’t work yet.').waitFor()
  await me.page.getByText('Sandbox not ready yet').waitFor()
  session.ask(session.transcript.turnId ?? '', [{ callId: 'a', name: 'read_file', args: { path: 'a' } }])
  await me.cards.getByText('If you approve this call now, it fails.').waitFor()
  session.live('system:progress', { stage: 'ready', message: 'Ready' })
  await me.page.getByText('The sandbox is ready.').waitFor()
  await being.first().waitFor({ state: 'hidden' })
  await me.cards.getByText('it fails').waitFor({ state: 'hidden' })

  session.live('system:progress', { stage: 'engine', message: 'The container engine does not answer.' })
  await me.page.getByText('The container engine does not answer. You can chat').waitFor()
  // The server has become ready meanwhile, so it has no progress to report.
  now().fake.breakConnections()
  await me.page.getByText('The container engine does not answer.').first().waitFor({ state: 'hidden' })
})

// Seen before: the list knew of a new state only when it was asked for again.
it('shows the state of the open session and its waiting calls in header and list at the same time', async () => {
  const { me, session } = await now().arrive()
  await me.say('hello')
  const row = me.page.getByRole('navigation', { name: 'Sessions' }).locator('[aria-current=page]')
  await row.getByText('hello').waitFor()
  await me.page.route('**/api/sessions*', (route) => route.abort())
  session.live('session:state', { sandbox: 'paused', recycleInMs: 300_000, network: 'none' })
  await me.page.getByText('Sandbox paused, 5 min left').waitFor()
  await expect.poll(() => row.textContent()).toContain('paused, 5 min left')
  session.ask(session.transcript.turnId ?? '', [{ callId: 'a', name: 'read_file', args: {} }])
  await me.page.getByText('1 tool call needs your approval', { exact: true }).waitFor()
  await expect.poll(() => row.textContent()).toContain('1 waiting')
  session.append('tool:approval_resolved', { callId: 'a', approved: false, by: 'human' })
  await me.page.getByText('You rejected it').first().waitFor()
  await expect.poll(() => row.textContent()).not.toContain('waiting')
  session.live('session:state', { sandbox: 'running', recycleInMs: null, network: 'none' })
  await me.page.getByText('Sandbox active', { exact: true }).waitFor()
})

/** Only in the first session of a page. */
const asking = (session: FakeSession) => {
  now().fake.onOpen = () => {}
  session.append('user:message', { turnId: 't', text: 'my chat' })
  session.ask('t', [{ callId: 'a', name: 'execute_command', args: { command: 'make' } }])
}

async function goAway({ page }: WorkspacePage, isNoticed = true): Promise<() => Promise<void>> {
  const gate = Promise.withResolvers<void>()
  now().fake.gate = gate.promise
  await page.route(/\/(api|healthz|readyz)/, (route) => route.abort())
  if (isNoticed) {
    now().fake.breakConnections()
    await page.getByText('The connection to the server is lost').waitFor()
  }
  return async () => {
    await page.unroute(/\/(api|healthz|readyz)/)
    gate.resolve()
    await page.getByText('The connection to the server is lost').waitFor({ state: 'hidden' })
  }
}

async function removeOpen(me: WorkspacePage): Promise<void> {
  await me
    .button(/^More for/)
    .first()
    .click()
  await me.page.getByRole('button', { name: 'Delete', exact: true }).click()
  const dialog = me.page.getByRole('dialog', { name: 'Delete this session?' })
  await dialog.getByRole('button', { name: 'Delete' }).and(me.page.locator('[aria-disabled=false]')).click()
  await dialog.waitFor({ state: 'hidden' })
}

it.each([
  ['that the page knows of', true],
  ['that the page has not noticed yet', false]
])('deletes no session and opens none while there is no connection: one %s', async (_name, isNoticed) => {
  const { me } = await now().arrive(asking)
  await me.cards.first().waitFor()
  const id = me.sessionId()
  await me.page.getByText('my chat').nth(1).waitFor()
  const comeBack = await goAway(me, isNoticed)
  await removeOpen(me)
  const notDeleted = me.page.getByText('Not deleted: no connection.')
  await notDeleted.waitFor()
  await me.button('New session').first().click()
  await me.page.getByText('No new session: no connection.').waitFor()
  expect(me.sessionId()).toBe(id)
  await expect.poll(() => me.cards.count()).toBe(1)
  expect(await me.page.getByText('2 waiting').count()).toBe(0)
  if (!isNoticed) return
  await comeBack()
  await expect.poll(() => notDeleted.count()).toBe(0)
  await expect.poll(() => me.cards.count()).toBe(1)
})

it('goes to a new session once the open one is deleted, without a word about it', async () => {
  const { me } = await now().arrive(asking)
  await me.cards.first().waitFor()
  const id = me.sessionId()
  await me.page.route(new RegExp(`/api/sessions/${id}\\?undo=true$`), async (route) => {
    if (route.request().method() !== 'DELETE') return route.continue()
    now().fake.delete(id)
    await me.page.evaluate('new Promise((done) => setTimeout(done, 200))')
    await route.fulfill({ json: {} })
  })
  await removeOpen(me)
  await me.cards.first().waitFor({ state: 'hidden' })
  await me.composer.waitFor()
  await expect.poll(() => me.sessionId()).not.toBe(id)
  expect(await me.page.getByText('This session was deleted').count()).toBe(0)
})

it('switches the buttons of a card off while there is no connection, and says that nothing was approved', async () => {
  const { me, session } = await now().arrive(asking)
  const approve = me.cards.first().getByRole('button', { name: /^Approve/ })
  await me.cards.first().locator('[data-approve][aria-disabled=false]').waitFor()
  const comeBack = await goAway(me)
  for (const name of [/^Approve/, /^Reject/, /^Edit/, /^Always allow/])
    await expect.poll(() => me.cards.first().getByRole('button', { name }).getAttribute('aria-disabled')).toBe('true')
  await approve.click({ force: true })
  await me.page.getByText('Not approved: there is no connection.').waitFor()
  await me.cards
    .first()
    .getByRole('button', { name: /^Reject/ })
    .click({ force: true })
  await me.page.getByText('Not rejected: there is no connection.').waitFor()
  await comeBack()
  await expect.poll(() => me.page.getByText('Not approved').count()).toBe(0)
  expect(session.answers).toEqual([])
  await me.approve()
  await expect.poll(() => session.answers.length).toBe(1)
})
