/** Walks through all views and dialogs: for everyone, in light and dark, by keyboard alone, by finger, and enlarged to 200 %. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import { inboxCard } from '../inbox-card.ts'
import { check, ENLARGED, NORMAL } from './for-everyone.ts'

const now = useFakePage()
const CALLS = [
  { callId: 'a', name: 'write_file', args: { path: 'a.txt', content: 'one\ntwo\n' } },
  { callId: 'b', name: 'execute_command', args: { command: 'ls -l' } }
]

it('leads past the sessions with the first stop of Tab', async () => {
  const { me } = await now().arrive()
  const { page } = me
  const skip = page.getByRole('link', { name: 'Skip to the message' })
  const stops = 'a[href], button, input, textarea, select, summary, [tabindex="0"]'
  await expect.poll(() => page.evaluate(`document.querySelector('${stops}').innerText`)).toBe('Skip to the message')
  await skip.focus()
  await expect.poll(() => skip.evaluate((link) => link.getBoundingClientRect().top)).toBeGreaterThan(0)
  await page.keyboard.press('Enter')
  await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('composer')
  await expect.poll(() => me.sessionId()).not.toBe('')
})

// Checked: without `sticky`, the buttons are below the window.
it('keeps the buttons of a card in sight at 200 %, while its beginning is read', async () => {
  const content = Array.from({ length: 60 }, (_, at) => `line ${at}`).join('\n')
  const { me } = await now().arrive(
    (session) => {
      session.append('user:message', { turnId: 't', text: 'go' })
      session.ask('t', [{ callId: 'a', name: 'write_file', args: { path: 'a.txt', content } }])
    },
    { viewport: ENLARGED }
  )
  await me.cards.getByText('line 59').waitFor()
  const seen = `(() => {
    const card = document.querySelector('.approval-card')
    card.scrollIntoView({ block: 'start' })
    const button = card.querySelector('[data-approve]')
    const { left, top, width, height } = button.getBoundingClientRect()
    return card.offsetHeight > innerHeight && button.contains(document.elementFromPoint(left + width / 2, top + height / 2))
  })()`
  await expect.poll(() => me.page.evaluate(seen)).toBe(true)
})

it('has no fault for anyone before its script has loaded', async () => {
  const page = now()
  page.fake.refuseWith = 'unauthorized'
  const me = await page.open(undefined, { viewport: NORMAL })
  const devtools = await me.page.context().newCDPSession(me.page)
  await me.page.getByLabel('Access token').waitFor()
  await check(me, devtools, 'login')
})

it('has no fault for anyone, in every view and dialog', async () => {
  const { fake, arrive } = now()
  fake.approvals = [inboxCard('x', { content: 'text' })]
  fake.files.set('a.txt', Buffer.from('one\n'))
  const { me, session } = await arrive(() => {}, { viewport: NORMAL })
  const devtools = await me.page.context().newCDPSession(me.page)
  const { page } = me
  const to = (hash: string) => page.evaluate(`location.hash = '${hash}'`)
  const closeDialog = async () => {
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
  }
  await check(me, devtools, 'start')

  session.append('user:message', { turnId: 't', text: 'go' })
  session.append('agent:response', { turnId: 't', text: '# Title\n\n- [ ] a\n\n```js\nlet x\n```\n\n|a|\n|-|\n|b|' })
  session.ask('t', CALLS)
  await me.cards.nth(1).waitFor()
  await check(me, devtools, 'approval')
  await me.button('Show the files').click()
  await me.button(/^a\.txt/).waitFor()
  await check(me, devtools, 'files')
  await me.button(/^a\.txt/).click()
  await page.getByRole('dialog').getByText('one').waitFor()
  await check(me, devtools, 'a file')
  await closeDialog()
  await me.button('Hide the files').click()

  await me
    .button(/^Waiting for you/)
    .first()
    .click()
  await page.locator('.inbox-card').waitFor()
  await check(me, devtools, 'waiting')
  await closeDialog()
  await me.button('Settings').click()
  await me.button('Session settings').click()
  await page.getByRole('dialog').waitFor()
  await check(me, devtools, 'session settings')
  await closeDialog()

  await to('#/servers')
  await page.getByRole('heading', { name: 'Servers', exact: true }).waitFor()
  await check(me, devtools, 'servers')
  await me.button('Add a server').first().click()
  await page.getByRole('dialog').waitFor()
  await check(me, devtools, 'a new server')
  await closeDialog()
  await to('#/activity')
  await page.getByRole('heading', { name: 'Activity' }).waitFor()
  await check(me, devtools, 'activity')
})
