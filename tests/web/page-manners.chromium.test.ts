/** Unfinished input stays in the session where the person began it, and survives slips of the hand. */

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { PHONE } from '../support/browser.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { useFakePage } from './fake-page.ts'
import type { FakeSession } from './fake-server.ts'
import { seriousFaults } from './serious-faults.ts'
import type { WorkspacePage } from './workspace-page.ts'

const now = useFakePage()
const file = (name: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(name) })
const asking = (session: FakeSession) => {
  session.append('user:message', { turnId: 't', text: 'go' })
  session.ask('t', [{ callId: 'a', name: 'execute_command', args: { command: 'make' } }])
}

const stopQuestion = ({ page }: WorkspacePage) => page.getByRole('dialog', { name: 'Stop this turn?' })

it('uploads all files into the session in which they were chosen', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'hello' })
    opened.append('turn:end', { turnId: 't', reason: 'done' })
  })
  const asked: string[] = []
  const first = Promise.withResolvers<void>()
  await me.page.route('**/file?path=*', async (route) => {
    asked.push(new URL(route.request().url()).pathname)
    if (asked.length === 1) await first.promise
    await route.fulfill({ json: {} })
  })
  await me.button('Show the files').click()
  await me.page.getByLabel('Files to upload').setInputFiles([file('one.txt'), file('two.txt')])
  await expect.poll(() => asked.length).toBe(1)
  await me.button('New session').first().click()
  await expect.poll(() => me.sessionId()).not.toBe(session.id)
  first.resolve()
  await expect.poll(() => asked.length).toBe(2)
  expect(asked).toEqual(Array(2).fill(`/api/sessions/${session.id}/file`))
})

it('asks about a session in that session only', async () => {
  const { me, session } = await now().arrive((opened) => {
    opened.append('user:message', { turnId: 't', text: 'hello' })
    opened.append('turn:end', { turnId: 't', reason: 'done' })
  })
  await me.button('New session').first().click()
  await expect.poll(() => me.sessionId()).not.toBe(session.id)
  await me.button('Settings').click()
  await me.button('Start a fresh history').click()
  const question = me.page.getByRole('dialog', { name: 'Start a fresh history?' })
  await question.waitFor()
  await me.page.goBack()
  await expect.poll(() => me.sessionId()).toBe(session.id)
  await question.waitFor({ state: 'hidden' })
  expect(now().offences).toEqual([])
})

it('keeps a dialog open when a press that began in it ends outside', async () => {
  const { me } = await now().arrive((opened) => opened.append('user:message', { turnId: 't', text: 'hello' }))
  await me.button('Delete all sessions').click()
  const dialog = me.page.getByRole('dialog')
  const box = await dialog.locator('p').first().boundingBox()
  const { mouse } = me.page
  await mouse.move((box?.x ?? 0) + 5, (box?.y ?? 0) + 5)
  await mouse.down()
  await mouse.move(20, 20, { steps: 3 })
  await mouse.up()
  await expect.poll(() => dialog.count()).toBe(1)
  // Not at once: it may be the second click of the double-click that opened the dialog.
  const clicked = async () => {
    await mouse.click(20, 20)
    return dialog.count()
  }
  await expect.poll(clicked, { interval: 500 }).toBe(0)
})

it('sends an idea and leaves what was typed alone', async () => {
  const { me, session } = await now().arrive()
  await me.composer.fill('half a thought')
  await me.button('list the files').click()
  await expect.poll(() => session.transcript.entries).toMatchObject([{ kind: 'user', text: 'list the files' }])
  await expect.poll(() => me.composer.inputValue()).toBe('half a thought')
})

it('closes a drawer over the page with Escape, and asks about the turn with the next one only', async () => {
  const { me, session } = await now().arrive(asking, { viewport: PHONE })
  for (const name of ['Show the files', 'Show the sessions']) {
    await me.button(name).click()
    await me.page.locator('.drawer').waitFor()
    await me.page.keyboard.press('Escape')
    await me.page.locator('.drawer').waitFor({ state: 'hidden' })
  }
  await me.page.keyboard.press('Escape')
  await stopQuestion(me).waitFor()
  expect(session.transcript.turnId).toBe('t')
})

// Seen before: beside the conversation, the files stayed open and the turn was asked about.
it('closes the files beside the conversation with the first Escape', async () => {
  const { me } = await now().arrive(asking)
  await me.button('Show the files').click()
  const panel = me.page.locator('.drawer.right-0')
  await panel.waitFor()
  await me.page.keyboard.press('Escape')
  await panel.waitFor({ state: 'hidden' })
  expect(await stopQuestion(me).count()).toBe(0)
})

// Seen before: two scrollbars side by side, and the buttons below the edge.
it('scrolls only the middle of a dialog that is taller than the window', async () => {
  const { me } = await now().arrive(asking, { viewport: { width: 360, height: 260 } })
  await me.cards.first().waitFor()
  await me.page.keyboard.press('Escape')
  const dialog = stopQuestion(me)
  await dialog.waitFor()
  const hidden = 'document.querySelector("dialog").scrollHeight - document.querySelector("dialog").clientHeight'
  await expect.poll(() => me.page.evaluate(hidden)).toBe(0)
  const stop = await dialog.getByRole('button', { name: 'Stop the turn' }).boundingBox()
  expect((stop?.y ?? 0) + (stop?.height ?? 999)).toBeLessThanOrEqual(260)
})

it('closes a menu with Escape also when what had the keyboard in it is gone', async () => {
  const { me, session } = await now().arrive((opened) => {
    asking(opened)
    opened.append('tool:allowed', { server: 'notes', name: 'read', definition: 'd' })
  })
  await me.button('Settings').click()
  await me.button('Ask again for read on notes').focus()
  await me.page.keyboard.press('Enter')
  await me.button('Ask again for read on notes').waitFor({ state: 'hidden' })
  await me.page.keyboard.press('Escape')
  await me.page.getByRole('group', { name: 'Settings' }).waitFor({ state: 'hidden' })
  expect(await stopQuestion(me).count()).toBe(0)
  expect(session.transcript.turnId).toBe('t')
  await expect.poll(() => me.page.evaluate('document.activeElement.ariaLabel')).toBe('Settings')
})

it('does not take the second click of a double-click on Send as Stop', async () => {
  const { me, session } = await now().arrive()
  await me.composer.fill('do it')
  await me.page.evaluate(`new MutationObserver((_, observer) => {
    const stop = document.querySelector('form [aria-label=Stop]')
    if (!stop) return
    observer.disconnect()
    stop.click()
  }).observe(document.body, { childList: true, subtree: true })`)
  await me.button('Send').click()
  await me.page.locator('form [aria-label=Stop][aria-disabled=false]').waitFor()
  expect(session.transcript.turnId).not.toBeNull()
  await me.page.locator('form [aria-label=Stop]').click()
  await me.page.getByText('You stopped this turn.').waitFor()
})

it('explains its keys in the settings', async () => {
  const { me } = await now().arrive()
  await me.button('Settings').click()
  await me.button('Keyboard shortcuts').click()
  await me.page.getByRole('dialog', { name: 'Keyboard shortcuts' }).getByText('No single key approves').waitFor()
  expect(await seriousFaults(me.page)).toEqual([])
})

it('attaches files that are dropped beside the panel, and says so of a folder', async () => {
  const { me } = await now().arrive()
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'note.txt'), 'a note')
  const mouse = await me.page.context().newCDPSession(me.page)
  const drop = async (path: string) => {
    const data = { items: [], files: [path], dragOperationsMask: 1 }
    for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
      await mouse.send('Input.dispatchDragEvent', { type, x: 600, y: 300, data })
  }
  await drop(join(folder, 'note.txt'))
  await me.button('Remove note.txt').waitFor()
  await drop(folder)
  await me.page.getByText('was not attached: it is a folder').waitFor()
  const uploads = () => now().fake.attachments.uploads
  await expect.poll(uploads).toMatchObject([{ mediaType: 'text/plain', size: 6 }])
  expect(me.page.context().pages()).toHaveLength(1)
  rmSync(folder, { recursive: true })
})

it('shows where to drop files for as long as they are over the place', async () => {
  const { me } = await now().arrive()
  await me.button('Show the files').click()
  await me.page.getByRole('heading', { name: 'Files' }).waitFor()
  const overlay = me.page.getByText('Drop files to upload them to the workspace')
  const drag = (type: string, to: string) =>
    me.page.evaluate(`document.querySelector('aside[aria-label=Files] h2').dispatchEvent(
      new DragEvent('${type}', { bubbles: true, cancelable: true, relatedTarget: document.querySelector('${to}') })
    )`)
  await drag('dragover', 'none')
  await overlay.waitFor()
  await drag('dragleave', 'aside[aria-label=Files] header')
  await me.page.evaluate('new Promise(requestAnimationFrame)')
  await expect.poll(() => overlay.count()).toBe(1)
  await drag('dragleave', 'main')
  await overlay.waitFor({ state: 'hidden' })
})

it('does not take the Enter that ends a composition for the end of a message', async () => {
  const { me } = await now().arrive()
  await me.composer.fill('にほん')
  const goesOn = (init: string) =>
    me.page.evaluate<boolean>(`document.querySelector('#composer').dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true, ${init} })
    )`)
  expect(await goesOn('isComposing: true')).toBe(true)
  expect(await goesOn('keyCode: 229')).toBe(true)
  expect(await goesOn('keyCode: 13')).toBe(false)
})

it('has letters in its fields that no phone zooms into', async () => {
  const { me } = await now().arrive(asking, { viewport: PHONE, hasTouch: true, isMobile: true })
  await me.button('Reject…').tap()
  await me.page.getByRole('textbox', { name: /Reason/ }).waitFor()
  const sizes = await me.page.evaluate(
    `[...document.querySelectorAll('input:not([type=file]), textarea, select')].map((field) => getComputedStyle(field).fontSize)`
  )
  expect(sizes).toEqual(['16px', '16px'])
})

it('offers no notifications where a page can show none', async () => {
  const { me, session } = await now().arrive()
  await me.page.evaluate(`{
    window.Notification = class { constructor() { throw new TypeError('Illegal constructor') } }
    Object.assign(Notification, { permission: 'granted', requestPermission: async () => 'granted' })
    Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' })
    localStorage.setItem('mcp-orchestrator:notify', 'yes')
  }`)
  asking(session)
  await me.cards.waitFor()
  await me.button('Settings').click()
  await me.button('Start a fresh history').waitFor()
  expect(await me.page.getByLabel('Notify me when something waits for me, or an answer is complete').count()).toBe(0)
  expect(now().offences).toEqual([])
})

it('notifies about a call that waits, and comes to the front when the notification is clicked', async () => {
  const { me, session } = await now().arrive()
  await me.page.evaluate(`{
    window.made = []
    window.focus = () => made.push('focus')
    window.Notification = class {
      constructor(_, { body }) { made.push(body); window.last = this }
      close() {}
    }
    Object.assign(Notification, { permission: 'granted', requestPermission: async () => 'granted' })
    Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' })
  }`)
  await me.button('Settings').click()
  await me.page.getByLabel('Notify me when something waits for me, or an answer is complete').check()
  asking(session)
  await me.cards.waitFor()
  await expect.poll(() => me.page.evaluate('made.length')).toBe(2)
  session.append('tool:approval_resolved', { callId: 'a', approved: false, by: 'human' })
  session.append('turn:end', { turnId: session.transcript.turnId ?? '', reason: 'done' })
  await expect.poll(() => me.page.evaluate('made.at(-1)')).toBe('The answer is complete.')
  await me.page.evaluate('last.onclick()')
  expect(await me.page.evaluate('made')).toEqual([
    'You will be notified when something waits for you, or an answer is complete.',
    '1 tool call needs your approval.',
    'The answer is complete.',
    'focus'
  ])
})

it.each([
  ['a small phone, or letters four times as large', 320],
  ['letters twice as large', 640],
  ['both panels open', 1024]
])('keeps every button of its bar within reach: %s', async (_when, width) => {
  const { me } = await now().arrive(() => {}, { viewport: { width, height: 700 } })
  if (width >= 1024) await me.button('Show the files').click()
  const bar =
    '(() => { const { scrollWidth, clientWidth } = document.querySelector("main header"); return scrollWidth - clientWidth })()'
  await expect.poll(() => me.page.evaluate(bar)).toBe(0)
  await me.button('Settings').click()
  await me.page.getByRole('group', { name: 'Settings' }).waitFor()
})

it('copies from a dialog where the page is not served securely, and keeps the keyboard in its place', async () => {
  now().fake.files.set('note.txt', Buffer.from('word for word'))
  const { me } = await now().arrive(() => {}, { permissions: ['clipboard-read'] })
  await me.page.evaluate(`{
    globalThis.clipboard = navigator.clipboard
    Object.defineProperty(navigator, 'clipboard', { value: undefined })
  }`)
  await me.button('Show the files').click()
  await me.button(/^note\.txt/).click()
  await me.button('Copy the code').click()
  await me.button('Copied').waitFor()
  expect(await me.page.evaluate('clipboard.readText()')).toBe('word for word')
  await expect.poll(() => me.page.evaluate('document.activeElement.ariaLabel')).toBe('Copied')
})

it.each(['servers', 'activity'])('asks for %s no faster than it is answered', async (part) => {
  const { me } = await now().arrive()
  let asked = 0
  await me.page.clock.install()
  await me.page.route(part === 'servers' ? '**/api/servers' : '**/api/audit?*', () => {
    asked += 1
  })
  await me.page.evaluate(`location.hash = '#/${part}'`)
  await expect.poll(() => asked).toBe(1)
  await me.page.clock.runFor(20_000)
  await me.page.evaluate(`fetch('/healthz')`)
  // The first one that the page itself needs, and one that is asked again and again.
  expect(asked).toBeLessThanOrEqual(2)
})

it('changes servers only with the admin token, which it asks for and keeps in memory alone', async () => {
  const { me } = await now().arrive()
  const { page } = me
  let admin = 'cli_only'
  await page.route('**/api/servers', (route) => {
    const shown = route.request().headers()['x-admin-token']
    if (shown !== undefined && shown !== 'right') {
      const error = { code: 'admin_required', message: 'Wrong admin token.' }
      return route.fulfill({ status: 403, json: { error } })
    }
    const reply = {
      admin: shown === 'right' ? 'allowed' : admin,
      file: null,
      problem: null,
      problems: [],
      exposure: null,
      servers: []
    }
    return route.fulfill({ json: reply })
  })
  await page.evaluate(`location.hash = '#/servers'`)
  await page.getByText('Servers are changed on the command line here').waitFor()
  expect(await me.button(/^Add/).count()).toBe(0)
  admin = 'token_needed'
  await me.button('Enter admin token').click()
  await page.getByLabel('The token that is set as ADMIN_TOKEN').fill('guess')
  await me.button('Unlock').click()
  await page.getByRole('alert').getByText('Wrong admin token.').waitFor()
  await page.getByLabel('The token that is set as ADMIN_TOKEN').fill('right')
  await page.keyboard.press('Enter')
  await me.button('Add a server').waitFor()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const kept = 'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])'
  expect(await page.evaluate(kept)).not.toContain('right')
  expect(now().offences.filter((text) => !/status of 403/.test(text))).toEqual([])
})
