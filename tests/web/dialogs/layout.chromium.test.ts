/** A dialog stays open when the window becomes narrow, as at 200 % zoom, although the panel that opened it goes. */
import { expect, it } from 'vitest'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()
const ZOOMED = { width: 640, height: 400 }

function working(session: FakeSession): void {
  session.append('user:message', { turnId: 't', text: 'go' })
}
/** Escape closes the dialog, and nothing asks whether to stop the turn. */
async function expectOpenThenClosed(me: WorkspacePage, name: string): Promise<void> {
  const dialog = me.page.getByRole('dialog', { name })
  await dialog.waitFor()
  await me.page.setViewportSize(ZOOMED)
  await me.page.getByRole('complementary', { name: 'Files' }).waitFor({ state: 'hidden' })
  await me.page.getByRole('navigation', { name: 'Sessions' }).waitFor({ state: 'hidden' })
  expect(await dialog.count()).toBe(1)
  await me.page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  expect(await me.page.locator('[data-stop-prompt]').count()).toBe(0)
}

// Seen before: the panel took the dialog with it, what was typed was lost, and Escape asked to stop the turn.
it('keeps a file open that the panel of files has opened, with what was typed', async () => {
  now().fake.files.set('notes.txt', Buffer.from('one\n'))
  const { me } = await now().arrive(working)
  await me.button('Show the files').click()
  await me.button(/^notes\.txt/).click()
  await me.button('Edit').click()
  const field = me.page.getByRole('textbox', { name: 'Content of notes.txt' })
  await field.fill('one\ntwo\n')
  await me.page.setViewportSize(ZOOMED)
  await me.page.getByRole('complementary', { name: 'Files' }).waitFor({ state: 'hidden' })
  expect(await field.inputValue()).toBe('one\ntwo\n')
  await expectOpenThenClosed(me, 'notes.txt')
})

it('keeps the questions of the panels open', async () => {
  now().fake.files.set('notes.txt', Buffer.from('one\n'))
  const { me } = await now().arrive(working)
  await me
    .button(/^More for/)
    .first()
    .click()
  await me.page.getByRole('button', { name: 'Delete', exact: true }).click()
  await expectOpenThenClosed(me, 'Delete this session?')
  await me.page.setViewportSize({ width: 1280, height: 800 })
  await me.button('Show the files').click()
  await me.button('New file or folder').click()
  await me.button('New folder').click()
  await expectOpenThenClosed(me, 'New folder')
})

it('keeps a comparison on the whole screen open, wherever its row is then', async () => {
  const { me } = await now().arrive((session) => {
    working(session)
    const content = Array.from({ length: 40 }, (_, at) => `line ${at}`).join('\n')
    session.ask('t', [
      {
        callId: 'a',
        name: 'write_file',
        args: { path: 'a.txt', content },
        target: { path: '/workspace/a.txt', is: 'new' }
      },
      ...Array.from({ length: 6 }, (_, at) => ({
        callId: `b${at}`,
        name: 'execute_command',
        args: { command: content }
      }))
    ])
  })
  // The page opens at the first card; once it takes clicks, it no longer moves.
  await me.cards.first().locator('[data-approve][aria-disabled=false]').waitFor()
  await me.button('Show the changes to a.txt on the whole screen').click()
  const dialog = me.page.getByRole('dialog', { name: 'Changes to a.txt' })
  await dialog.waitFor()
  await me.page.evaluate('document.querySelector("[aria-label=Messages]").scrollTop = 1e6')
  await me.page.setViewportSize(ZOOMED)
  await me.page.getByRole('navigation', { name: 'Sessions' }).waitFor({ state: 'hidden' })
  // Long enough for the rows to be drawn anew.
  await me.page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')
  expect(await dialog.count()).toBe(1)
  await me.page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  expect(await me.page.getByRole('dialog', { name: 'Stop this turn?' }).count()).toBe(0)
})

// Seen before: the panel of files covered a part of the menu, and the header lost the name of the model to that of its provider.
it.each([1440, 1024])('shows the menu of a message and the model whole beside the files: %i px', async (width) => {
  const { me } = await now().arrive(working, { viewport: { width, height: 768 } })
  await me.button('Show the files').click()
  const files = me.page.getByRole('complementary', { name: 'Files' })
  await files.waitFor()
  await me.button('Actions for this message').click()
  const menu = me.page.getByRole('group', { name: 'Actions for this message' })
  await menu.waitFor()
  const [panel, box] = [await files.boundingBox(), await menu.boundingBox()]
  expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(panel?.x ?? 0)
  expect(box?.x).toBeGreaterThanOrEqual(0)
  const named = me.page.locator('[aria-label^="Choose a model"] .truncate').first()
  const [name, mode] = [await named.boundingBox(), await me.button(/^Approval mode/).boundingBox()]
  expect(name?.width).toBeGreaterThan(50)
  expect((name?.x ?? 0) + (name?.width ?? 0)).toBeLessThanOrEqual(mode?.x ?? 0)
})
