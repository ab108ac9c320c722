/** Files that a person attaches: chosen, pasted and dropped, before and after they are sent. */
import { beforeEach, describe, expect, it } from 'vitest'
import { pngOf } from '../../support/tiny-png.ts'
import { useFakePage } from '../fake-page.ts'
import type { FakeSession } from '../fake-server.ts'
import { seriousFaults } from '../serious-faults.ts'
import type { WorkspacePage } from '../workspace-page.ts'

const now = useFakePage()
let me: WorkspacePage
let session: FakeSession
beforeEach(async () => {
  ;({ me, session } = await now().arrive())
})

const red = { name: 'red.png', mimeType: 'image/png', buffer: pngOf(40, 30) }
const blue = { name: 'blue.png', mimeType: 'image/png', buffer: pngOf(50, 30, [40, 40, 200]) }
const draft = () => me.page.getByRole('list', { name: 'Attached files' }).getByRole('listitem')
const picker = () => me.page.getByLabel('Files to attach')
const sent = () => session.transcript.entries.flatMap((entry) => (entry.kind === 'user' ? [entry] : []))
const names = () => sent().map(({ attachments = [] }) => attachments.map(({ name }) => name))
/** Whether the browser has decoded it. */
const isDrawn = (image: ReturnType<typeof draft>) =>
  expect
    .poll(() => image.evaluate((each) => (each as unknown as { naturalWidth: number }).naturalWidth))
    .toBeGreaterThan(0)
const isUploaded = () => expect.poll(() => me.button('Send').isEnabled()).toBe(true)

/** Dispatches an event with these files, and text, as the browser does when a person drags or pastes. */
async function give(event: string, on: string, files: (typeof red)[], text = ''): Promise<void> {
  const given = files.map(({ buffer, ...file }) => ({ ...file, data: buffer.toString('base64') }))
  await me.page.evaluate(`
    const transfer = new DataTransfer()
    const text = ${JSON.stringify(text)}
    if (text !== '') transfer.setData('text/plain', text)
    for (const { name, mimeType, data } of ${JSON.stringify(given)}) {
      const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0))
      transfer.items.add(new File([bytes], name, { type: mimeType }))
    }
    const options = { bubbles: true, cancelable: true, dataTransfer: transfer, clipboardData: transfer }
    const Kind = ${JSON.stringify(event)} === 'paste' ? ClipboardEvent : DragEvent
    document.querySelector(${JSON.stringify(on)}).dispatchEvent(new Kind(${JSON.stringify(event)}, options))
  `)
}
const drag = (event: 'dragover' | 'drop', files: (typeof red)[]) => give(event, '[aria-label=Messages]', files)
const paste = (text: string, files: (typeof red)[] = []) => give('paste', '#composer', files, text)

describe('attaching', () => {
  it('shows what is attached, and sends it with the message, or alone', async () => {
    await picker().setInputFiles([red, blue])
    await expect.poll(() => draft().count()).toBe(2)
    await isDrawn(draft().first().locator('img'))
    await me.page.getByText("Demo (rules, no AI) can't look at images.").waitFor()
    await isUploaded()
    await me.button('Remove blue.png').click()
    await me.say('What is this?')
    await expect.poll(names).toEqual([['red.png']])
    await expect.poll(() => draft().count()).toBe(0)
    await isDrawn(me.page.getByRole('button', { name: 'Open red.png' }).locator('img'))
    session.append('turn:end', { turnId: session.transcript.turnId ?? '', reason: 'done' })
    await picker().setInputFiles([blue])
    await isUploaded()
    await me.button('Send').click()
    await expect.poll(names).toEqual([['red.png'], ['blue.png']])
    expect(sent()[1]?.text).toBe('')
    expect(now().offences).toEqual([])
  })

  it('takes files that are dropped anywhere in the chat, and shows where they go', async () => {
    const target = me.page.getByText('Drop files to attach them')
    await drag('dragover', [red])
    await target.waitFor()
    await drag('drop', [red, blue])
    await target.waitFor({ state: 'hidden' })
    await expect.poll(() => draft().allInnerTexts()).toEqual(['red.png', 'blue.png'])
  })

  it('takes pasted images, and long text as a file; short text and what office programs copy stay text', async () => {
    await paste('', [red])
    await expect.poll(() => draft().allInnerTexts()).toEqual(['red.png'])
    await paste('x'.repeat(20_001))
    await expect.poll(() => draft().allInnerTexts()).toEqual(['red.png', 'pasted-text.txt'])
    await paste('a\tb', [red])
    await paste('short')
    await expect.poll(() => draft().count()).toBe(2)
  })

  it('keeps the files of a draft through a change of the session and a reload', async () => {
    await picker().setInputFiles([red])
    await me.composer.fill('half a thought')
    await isDrawn(draft().locator('img'))
    const before = me.sessionId()
    await me.button('New session').first().click()
    await expect.poll(() => me.sessionId()).not.toBe(before)
    await expect.poll(() => draft().count()).toBe(0)
    await me.page.goBack()
    await expect.poll(() => draft().allInnerTexts()).toEqual(['red.png'])
    await me.page.reload()
    await isDrawn(draft().locator('img'))
    await me.composer.press('Enter')
    await expect.poll(names).toEqual([['red.png']])
    await me.page.reload()
    await me.page.getByRole('button', { name: 'Open red.png' }).waitFor()
    await expect.poll(() => draft().count()).toBe(0)
  })

  it('queues files with their message, and takes them back', async () => {
    await me.say('first')
    await me.page.getByText('Thinking…').waitFor()
    await picker().setInputFiles([red])
    await isUploaded()
    await me.say('second')
    await me.page.getByText('(1 file)').waitFor()
    await me.button('Take back').click()
    await expect.poll(() => draft().allInnerTexts()).toEqual(['red.png'])
    await expect.poll(() => me.composer.inputValue()).toBe('second')
  })

  // Seen before: it stayed stored as long as the session.
  it('removes a file from the server that is taken out of the draft, unless a queued message has it too', async () => {
    const { attachments } = now().fake
    const isStored = () => Promise.all(attachments.uploads.map(({ id }) => attachments.isStored(id)))
    await me.say('first')
    await me.page.getByText('Thinking…').waitFor()
    await picker().setInputFiles([red])
    await isUploaded()
    await me.say('second')
    await me.page.getByText('(1 file)').waitFor()
    await picker().setInputFiles([red, blue])
    await isUploaded()
    await me.button('Remove red.png').click()
    await me.button('Remove blue.png').click()
    await expect.poll(isStored).toEqual([true, true, false])
  })

  it('does not send while a file is uploaded, and says once why files were not attached', async () => {
    const { attachments } = now().fake
    const gate = Promise.withResolvers<void>()
    attachments.gate = gate.promise
    attachments.refusal = 'The file is too large: the limit is 10 MB.'
    await picker().setInputFiles([red, blue])
    await me.page.getByText('Uploading…').waitFor()
    await me.composer.fill('wait')
    expect(await me.button('Send').isDisabled()).toBe(true)
    await me.composer.press('Enter')
    gate.resolve()
    await me.page
      .getByText(/“red.png” was not attached: The file is too large.* “blue.png” was not attached: /)
      .waitFor()
    await expect.poll(() => draft().count()).toBe(0)
    expect(sent()).toEqual([])
    await expect.poll(() => me.composer.inputValue()).toBe('wait')
  })

  it('shows the model a smaller version of a large image, and an image of what it does not take', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20"/></svg>'
    await picker().setInputFiles([
      { ...red, name: 'large.png', buffer: pngOf(4000, 100) },
      { name: 'drawing.svg', mimeType: 'image/svg+xml', buffer: Buffer.from(svg) },
      { name: 'data.zip', mimeType: 'application/zip', buffer: Buffer.from('PK\0\0') }
    ])
    await expect.poll(() => draft().locator('img').count()).toBe(2)
    await isUploaded()
    await me.say('look')
    await expect
      .poll(() => sent()[0]?.attachments)
      .toMatchObject([
        { name: 'large.png', width: 4000, view: { mediaType: 'image/png', width: 2000, height: 50 } },
        { name: 'drawing.svg', mediaType: 'text/plain', view: { mediaType: 'image/png', width: 30, height: 20 } },
        { name: 'data.zip', mediaType: 'application/octet-stream' }
      ])
    expect(sent()[0]?.attachments?.[2]).not.toHaveProperty('view')
  })
})

describe('images in the conversation', () => {
  it('open large, by keyboard too, and survive a reload', async () => {
    await picker().setInputFiles([red, blue])
    await expect.poll(() => draft().locator('img').count()).toBe(2)
    await isUploaded()
    await me.say('look')
    await me.button('Open red.png').focus()
    await me.page.keyboard.press('Enter')
    const dialog = me.page.getByRole('dialog')
    await isDrawn(dialog.getByRole('img', { name: 'red.png' }))
    await me.page.keyboard.press('ArrowRight')
    await isDrawn(dialog.getByRole('img', { name: 'blue.png' }))
    expect(await seriousFaults(me.page)).toEqual([])
    await me.page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    await expect.poll(() => me.page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Open red.png')
    await me.page.reload()
    await isDrawn(me.button('Open blue.png').locator('img'))
  })

  it('are shown in the result of a call', async () => {
    const file = await now().fake.attachments.add(red.buffer)
    session.append('user:message', { turnId: 't', text: 'shoot' })
    session.ask('t', [{ callId: 'c', name: 'screenshot', server: 'shots', args: {} }])
    session.append('tool:approval_resolved', { callId: 'c', approved: true, by: 'human' })
    session.append('tool:started', { callId: 'c' })
    session.append('tool:result', {
      callId: 'c',
      isError: false,
      content: [
        { type: 'text', text: 'Here it is.' },
        { type: 'image', mimeType: 'image/png', file }
      ]
    })
    await me.page.getByText('Here it is.').waitFor()
    await isDrawn(me.page.getByRole('button', { name: /^Open image/ }).locator('img'))
    expect(await me.read(me.outputs)).not.toContain(file.id)
  })
})
