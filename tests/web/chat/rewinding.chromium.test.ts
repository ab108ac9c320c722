/** Messages, answers and calls have a menu: rewind to them, edit them, undo what they changed. What was taken back stays readable. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import type { ChangedFile } from '../../../contract/effects/change-set.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'

const now = useFakePage()
const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }
const file = (path: string): ChangedFile => ({
  path,
  after: { type: 'file', mode: 420, size: 3, hash: 'a'.repeat(64) }
})

function talked(session: FakeSession): void {
  session.onCommand = (command, input) => {
    session.answers.push(input)
    if (command !== 'history:rewind') return
    session.append('history:rewound', { from: Number(input.from), by: 'human' })
    if (input.message) session.handle('message', input.message as Record<string, unknown>, () => {})
  }
  const turn = (turnId: string, text: string, answer: string) => {
    session.append('user:message', { turnId, text })
    session.append('agent:response', { turnId, text: answer })
  }
  turn('t1', 'Write a poem.', 'Roses are red.')
  session.append('turn:end', { turnId: 't1', reason: 'done' })
  turn('t2', 'Save it in poem.txt', 'I will write it down.')
  session.ask('t2', [{ callId: 'c1', name: 'execute_command', args: { command: 'touch poem.txt' } }])
  session.append('tool:approval_resolved', { callId: 'c1', approved: true, by: 'human' })
  session.append('tool:started', { callId: 'c1' })
  const changes = { changeId: 'call:c1', hash: 'h', total: 1, files: [file('poem.txt')] }
  session.append('tool:result', { callId: 'c1', isError: false, content: [{ type: 'text', text: 'ok' }], changes })
  session.append('turn:end', { turnId: 't2', reason: 'done' })
}

/** The change that reverts the creation of a file. */
const removed = ({ path, after }: ChangedFile): ChangedFile => ({ path, before: after })

/** The history of the files: one version, made by the call. */
async function withFiles(page: Page, files: ChangedFile[], callId = 'c1'): Promise<void> {
  const version = { changeId: `call:${callId}`, hash: 'h', total: 1, files, at: 1, about: { by: 'call', callId } }
  await page.route('**/changes?*', (route) =>
    route.fulfill({ json: { versions: [version], isThinned: false, hasMore: false } })
  )
  await page.route('**/changes/*/revert?*', (route) => route.fulfill({ json: { hash: 'plan', files } }))
}

it('undoes a rewind by keyboard while nothing was said since', async () => {
  const { me, session } = await now().arrive((session) => {
    talked(session)
    const from = session.transcript.entries.findLast(({ kind }) => kind === 'user')?.seq ?? 0
    session.append('history:rewound', { from, by: 'human' })
    session.onCommand = (command, { of }) => {
      if (command === 'history:restore') session.append('history:restored', { of: Number(of), by: 'human' })
    }
  })
  await me.button('Taken back: 1 message, 1 answer and 1 call').waitFor()
  await me.button('Actions for this rewind').press('Enter')
  await me.button('Undo this rewind').press('Enter')
  await me.page.getByText('You undid that; it changed no files.').waitFor()
  await me.page.getByText('I will write it down.').waitFor()
  expect(await me.button('Taken back').count()).toBe(0)
  expect(session.transcript.entries.some(({ rewound }) => rewound)).toBe(false)
  await me.button('Actions for this rewind').press('Enter')
  await me.button('Branch from here').waitFor()
  expect(await me.button('Undo this rewind').count()).toBe(0)
})

it('rewinds to a message by keyboard, with the files since then, and folds what was taken back', async () => {
  const { me, session } = await now().arrive(talked)
  const { page } = me
  await withFiles(page, [removed(file('poem.txt')), { ...removed(file('both.txt')), conflict: { seen: 'x' } }])
  const menu = me.button('Actions for this message').last()
  await menu.focus()
  await page.keyboard.press('Enter')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Rewind to here' }).waitFor()
  await page.getByText('1 message, 1 answer and 1 call will be crossed out').waitFor()
  await page.getByRole('radio', { name: 'Both' }).check()
  await page.getByText('delete poem.txt').waitFor()
  await page.getByText('leave both.txt').waitFor()
  // Seen before: the file that was left out was counted too.
  await page.getByText('1 file will be put back.').waitFor()
  expect(await seriousFaults(page)).toEqual([])
  const confirm = page.locator('button[form=rewind]:not([aria-disabled=true])')
  await confirm.waitFor()
  await confirm.press('Enter')
  await me.button('Taken back: 1 message, 1 answer and 1 call').waitFor()
  expect(await page.getByText('I will write it down.').count()).toBe(0)
  await page.getByText('Roses are red.').waitFor()
  const from = session.transcript.entries.find(({ rewound }) => rewound)?.seq
  expect(session.answers).toEqual([
    { changeId: 'call:c1', scope: 'since', hash: 'plan', choices: { 'both.txt': 'workspace' } },
    { from }
  ])
  await me.button('Taken back').click()
  await page.locator('del', { hasText: 'I will write it down.' }).waitFor()
  expect(
    await page
      .locator('del')
      .getByRole('button', { name: /^Actions for/ })
      .count()
  ).toBe(0)
  expect(await seriousFaults(page)).toEqual([])
  await page.reload()
  await me.button('Taken back').waitFor()
  expect(now().offences).toEqual([])
})

it('edits an earlier message on a phone, and keeps the text if that is refused', async () => {
  const { me, session } = await now().arrive(talked, PHONE)
  const { page } = me
  await page.route('**/changes?*', (route) =>
    route.fulfill({ json: { versions: [], isThinned: false, hasMore: false } })
  )
  session.onMessage = (text, turnId) => {
    session.append('agent:response', { turnId, text: `Done: ${text}` })
    session.append('turn:end', { turnId, reason: 'done' })
  }
  await me.button('Actions for this message').first().tap()
  await me.button('Edit…').tap()
  const box = page.getByRole('textbox', { name: 'Your message' })
  await expect.poll(() => box.inputValue()).toBe('Write a poem.')
  await box.fill('Write a song.')
  expect(await seriousFaults(page)).toEqual([])
  const send = page.locator('button[form=rewind]:not([aria-disabled=true])')
  session.refuses = true
  await send.tap()
  await page.getByRole('alert').getByText('Too fast.').waitFor()
  expect(await box.inputValue()).toBe('Write a song.')
  session.refuses = false
  await send.tap()
  await page.getByText('Done: Write a song.').waitFor()
  await me.button('Taken back: 2 messages, 2 answers and 1 call').waitFor()
  expect(session.transcript.entries.filter(({ kind }) => kind === 'user')).toHaveLength(3)
})

it('branches from a message, and from before a rewind', async () => {
  const { me, session } = await now().arrive(talked)
  const { page } = me
  const asked: unknown[] = []
  await page.route('**/branch', (route) => {
    asked.push(route.request().postDataJSON())
    return asked.length === 1
      ? route.fulfill({ status: 409, json: { error: { code: 'versions_removed', message: 'They were removed.' } } })
      : route.fulfill({ status: 201, json: { sessionId: 'the-branch' } })
  })
  const before = session.transcript.entries.findLast(({ kind }) => kind === 'user')?.seq ?? 0
  await me.button('Actions for this message').last().click()
  await me.button(/^Branch (before this|from here)/).click()
  await page.getByRole('radio', { name: 'The files as they were then' }).check()
  expect(await seriousFaults(page)).toEqual([])
  const confirm = page.locator('button[form=branch]:not([aria-disabled=true])')
  await confirm.click()
  await page.getByRole('alert').getByText('They were removed.').waitFor()
  await page.keyboard.press('Escape')
  session.append('history:rewound', { from: before, by: 'human' })
  await me.button('Actions for this rewind').click()
  await me.button(/^Branch (before this|from here)/).click()
  await confirm.click()
  await page.waitForURL(/the-branch/)
  expect(asked).toEqual([
    { before, files: 'then' },
    { before: session.transcript.seq, files: 'now' }
  ])
})

it('undoes what one call changed, and counts no file that is left as it is', async () => {
  const { me, session } = await now().arrive(talked)
  const { page } = me
  await withFiles(page, [removed(file('poem.txt')), { ...removed(file('both.txt')), conflict: { seen: 'x' } }])
  await me.button('Actions for this call').click()
  await me.button('Undo this change…').click()
  const dialog = page.getByRole('dialog', { name: 'Undo this change' })
  await dialog.getByRole('option', { name: /both\.txt/ }).click()
  await dialog.getByRole('radio', { name: 'Leave it as it is now' }).check()
  await dialog.getByRole('button', { name: 'Revert 1 file' }).and(page.locator('[aria-disabled=false]')).click()
  await dialog.waitFor({ state: 'hidden' })
  await page.getByText('Reverted 1 file.').waitFor()
  expect(session.answers).toEqual([
    { changeId: 'call:c1', scope: 'one', hash: 'plan', choices: { 'both.txt': 'workspace' } }
  ])
})

async function openRewind(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Actions for this message' }).last().click()
  await page.getByRole('button', { name: 'Rewind to here…' }).click()
  await page.getByRole('radio', { name: 'Both' }).check()
}

// Seen before: the person's own upload was deleted, and the dialog named it like a file of the model.
it('names what the person changed themselves before it takes that back', async () => {
  const { me } = await now().arrive(talked)
  const { page } = me
  const mine = file('my-notes.txt')
  const versions = [
    { changeId: 'person:1', hash: 'h', total: 1, files: [mine], at: Date.now() + 1000, about: { by: 'person' } },
    { changeId: 'call:c1', hash: 'h', total: 1, files: [file('poem.txt')], at: 1, about: { by: 'call', callId: 'c1' } }
  ]
  await page.route('**/changes?*', (route) => route.fulfill({ json: { versions, isThinned: false, hasMore: false } }))
  const files = [removed(file('poem.txt')), removed(mine)]
  await page.route('**/changes/*/revert?*', (route) => route.fulfill({ json: { hash: 'plan', files } }))
  await openRewind(page)
  await page.getByText('You changed 1 of these files yourself since then.').waitFor()
  const listed = page.getByRole('dialog').getByRole('listitem')
  expect(await listed.allInnerTexts()).toEqual([
    expect.stringMatching(/delete my-notes\.txt\s*your own change/),
    'delete poem.txt'
  ])
  expect(await seriousFaults(page)).toEqual([])
})

// Seen before: the button did nothing, and a notice said again and again that a call was running.
it('says that a command is running, stops it on request, and then lists its changes', async () => {
  const { me, session } = await now().arrive((opened) => {
    talked(opened)
    opened.append('user:message', { turnId: 't3', text: 'Run it.' })
    opened.ask('t3', [{ callId: 'c2', name: 'execute_command', args: { command: 'sleep 100' } }])
    opened.append('tool:approval_resolved', { callId: 'c2', approved: true, by: 'human' })
    opened.append('tool:started', { callId: 'c2' })
  })
  const { page } = me
  await withFiles(page, [removed(file('poem.txt'))], 'c2')
  await openRewind(page)
  await page.getByText('A command is running and may still change files.').waitFor()
  expect(await seriousFaults(page)).toEqual([])
  await me.button('Stop it now').click()
  await expect.poll(() => session.transcript.turnId).toBeNull()
  await page.getByText('delete poem.txt').waitFor()
  await page.locator('button[form=rewind]:not([aria-disabled=true])').click()
  await me.button(/^Taken back: 1 message/).waitFor()
})
