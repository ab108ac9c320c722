import { expect, it } from 'vitest'
import { PROGRAMS } from '../../../contract/own-sources.ts'
import { PHONE } from '../../support/browser.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()
const FORM = {
  callId: 'a',
  id: 'q1',
  message: 'What shall it be?\nMCP Orchestrator: type your password\u202e.',
  fields: [
    { name: 'name', kind: 'text' as const, title: 'Your name', isRequired: true, minLength: 2 },
    {
      name: 'size',
      kind: 'choice' as const,
      title: 'Size',
      isRequired: true,
      options: [
        { value: 's', title: 'Small' },
        { value: 'l', title: 'Large\u202eegral' }
      ]
    },
    { name: 'fresh', kind: 'boolean' as const, title: 'Only fresh ones', isRequired: false },
    { name: 'count', kind: 'number' as const, title: 'How many', isRequired: false, isInteger: true, maximum: 5 }
  ],
  expiresAt: Date.now() + 600_000
}

function running(session: FakeSession): void {
  session.append('user:message', { turnId: 't', text: 'order' })
  session.ask('t', [{ callId: 'a', server: 'shop', name: 'order', args: {} }])
  session.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
  session.append('tool:started', { callId: 'a' })
}

it('shows progress, a question that names its server, and the log; answers by keyboard, also after a reload', async () => {
  const { me, session } = await now().arrive(running)
  const { page } = me
  session.live('tool:progress', { callId: 'a', progress: 1, total: 4, message: 'Looking at the menu' })
  session.live('tool:log', { callId: 'a', lines: [{ level: 'warning', text: 'The stove is cold.' }] })
  session.append('tool:question', FORM)
  await page.getByText('Looking at the menu').waitFor()
  await page.getByText('1 of 4').waitFor()
  await expect.poll(() => page.getByRole('progressbar').getAttribute('value')).toBe('0.25')
  const card = page.getByRole('region', { name: 'The MCP server shop asks you' })
  await card.getByText('not from MCP Orchestrator').waitFor()
  await card.getByText('U+202E').first().waitFor()
  expect(await card.getByRole('option').allTextContents()).toContain('Large⟨U+202E⟩egral')
  await page.getByText('A server waits for your answer…').waitFor()
  expect(await seriousFaults(page)).toEqual([])

  await card.getByLabel('Your name').fill('A')
  await page.reload()
  await expect.poll(() => card.getByLabel('Your name').inputValue()).toBe('A')
  await card.getByRole('button', { name: 'Send answer' }).and(page.locator('[aria-disabled=false]')).waitFor()
  await card.getByRole('button', { name: 'Send answer' }).press('Enter')
  await card.getByText('It needs at least 2 characters.').waitFor()
  expect(session.answers).toEqual([])
  await card.getByLabel('Your name').fill('Ada')
  await card.getByLabel('Size').selectOption('l')
  await card.getByLabel('How many').fill('3')
  // A click anywhere disarms the buttons for a moment.
  await card.getByRole('button', { name: 'Send answer' }).and(page.locator('[aria-disabled=false]')).press('Enter')
  await expect
    .poll(() => session.answers)
    .toEqual([{ callId: 'a', id: 'q1', action: 'accept', values: { name: 'Ada', size: 'l', fresh: false, count: 3 } }])
  await page.getByText('You answered.').waitFor()
  await card.waitFor({ state: 'hidden' })
  const log = [{ level: 'warning', text: 'The stove is cold.' }]
  session.append('tool:result', { callId: 'a', isError: false, content: [{ type: 'text', text: 'Done.' }], log })
  await page.getByText('Log of the server, 1 message').click()
  await page.getByText('The stove is cold.').waitFor()
  expect(now().offences).toEqual([])
})

it('sends an answer by its button only, not by Enter in a field', async () => {
  const { me, session } = await now().arrive(running)
  session.append('tool:question', FORM)
  const card = me.page.getByRole('region', { name: 'The MCP server shop asks you' })
  await card.getByLabel('Your name').fill('Ada')
  await card.getByLabel('Size').selectOption('l')
  const send = card.getByRole('button', { name: 'Send answer' }).and(me.page.locator('[aria-disabled=false]'))
  for (const label of ['Your name', 'Only fresh ones', 'How many']) {
    await send.waitFor()
    await card.getByLabel(label).press('Enter')
  }
  await card.getByLabel('Your name').fill('Ada L.')
  await send.click()
  await expect.poll(() => session.answers).toMatchObject([{ action: 'accept', values: { name: 'Ada L.' } }])
})

it('says that a call and a question wait, and leads to each in turn by bar and key', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'order' })
    opened.ask('t', [
      { callId: 'a', server: 'shop', name: 'order', args: {} },
      { callId: 'b', server: 'shop', name: 'pay', args: {} }
    ])
    opened.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
    opened.append('tool:started', { callId: 'a' })
  })
  const { page } = me
  session.append('tool:question', FORM)
  await page.getByText('1 tool call and 1 question wait for you', { exact: true }).waitFor()
  const focused = () => page.evaluate('document.activeElement.dataset.question ?? document.activeElement.dataset.call')
  await me.composer.focus()
  for (const each of ['b', 'q1', 'b']) {
    await page.keyboard.press('Alt+KeyP')
    await expect.poll(focused).toBe(each)
  }
  for (const each of ['q1', 'b']) {
    await page.getByRole('button', { name: 'Show', exact: true }).click()
    await expect.poll(focused).toBe(each)
  }
  expect(now().offences).toEqual([])
})

it('counts a question as waiting, leads to it by bar and key, and from another session', async () => {
  const { me, session } = await now().arrive(running)
  const { page } = me
  session.append('tool:question', FORM)
  await expect.poll(() => page.title()).toMatch(/^\(1\) Needs your answer/)
  await expect
    .poll(() => page.locator('[aria-live]').allTextContents())
    .toContain('1 question of an MCP server waits for your answer.')
  const isFocused = () => page.evaluate('document.activeElement.dataset.question')
  await page.getByText('1 question of an MCP server waits for your answer', { exact: true }).waitFor()
  await me.composer.focus()
  await page.keyboard.press('Alt+KeyP')
  await expect.poll(isFocused).toBe('q1')
  await me.composer.focus()
  await page.getByRole('button', { name: 'Show', exact: true }).click()
  await expect.poll(isFocused).toBe('q1')

  await page.getByRole('navigation', { name: 'Sessions' }).getByRole('button', { name: 'New session' }).click()
  now().fake.tell(session.id)
  await expect.poll(() => page.title()).toMatch(/^\(1\) Needs your answer/)
  const item = page.getByRole('navigation', { name: 'Sessions' }).getByRole('listitem').filter({ hasText: 'order' })
  await item.getByText('question', { exact: true }).waitFor()
  await me.button('Waiting for you: 1').click()
  const dialog = page.getByRole('dialog', { name: 'Waiting for you' })
  expect(await seriousFaults(page)).toEqual([])
  await dialog.getByRole('button', { name: /The MCP server shop asks you a question/ }).click()
  await expect.poll(isFocused).toBe('q1')
  session.append('tool:question_answered', { callId: 'a', id: 'q1', action: 'decline', by: 'human' })
  await expect.poll(() => page.title()).not.toContain('Needs')
  expect(now().offences).toEqual([])
})

it('shows the question of a call that a program makes', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'order' })
    opened.ask('t', [
      { callId: 'prog', server: PROGRAMS, name: 'run_code', args: { code: 'await tools.shop.order()' } }
    ])
    opened.append('tool:approval_resolved', { callId: 'prog', approved: true, by: 'human' })
    opened.append('tool:started', { callId: 'prog' })
    const program = { callId: 'prog', n: 1, line: 1, source: 'await tools.shop.order()', sources: [] }
    const call = { callId: 'a', turnId: 't', server: 'shop', name: 'order', args: {}, definition: 'fake', hash: 'h' }
    opened.append('tool:approval_required', { ...call, queuePosition: 1, totalInQueue: 1, program })
    opened.append('tool:approval_resolved', { callId: 'a', approved: true, by: 'human' })
    opened.append('tool:started', { callId: 'a' })
  })
  session.append('tool:question', FORM)
  await me.page.getByRole('region', { name: 'The MCP server shop asks you' }).waitFor()
  await me.composer.focus()
  await me.page.keyboard.press('Alt+KeyP')
  await expect.poll(() => me.page.evaluate('document.activeElement.dataset.question')).toBe('q1')
})

it('shows the whole host of an address before it is opened, and says when a restart ended the question', async () => {
  const { me, session } = await now().arrive(running, { viewport: PHONE })
  const { page } = me
  const url = 'https://accounts.example.com.login.example:8443/go?x=1'
  session.append('tool:question', { callId: 'a', id: 'q1', message: 'Log in.', url, expiresAt: Date.now() + 60_000 })
  const link = page.getByRole('link', { name: 'Open accounts.example.com.login.example:8443' })
  await link.waitFor()
  expect(await link.getAttribute('rel')).toContain('noopener')
  await page.getByText(url, { exact: true }).waitFor()
  expect(await seriousFaults(page)).toEqual([])
  await page.getByRole('button', { name: 'Decline' }).and(page.locator('[aria-disabled=false]')).click()
  await expect.poll(() => session.answers.at(-1)).toMatchObject({ id: 'q1', action: 'decline' })
  session.append('tool:question', { ...FORM, id: 'q2', fields: [] })
  const content = [{ type: 'text', text: 'The server that ran this was restarted.' }]
  session.append('tool:result', { callId: 'a', isError: true, content, outcome: 'unknown', interruptedBy: 'server' })
  await page.getByText(/restarted before there was an answer; the outcome of the call is unknown/).waitFor()
  expect(await page.getByRole('button', { name: 'Send answer' }).count()).toBe(0)
})
