import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pngOf } from '../../../tests/support/tiny-png.ts'
import type { ContentStore } from '../../storage/checkpoint-store.ts'
import type { Workspace } from '../sandboxes/open-workspace.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from './fake-chat.ts'

const image = pngOf(30, 20)
let files: Map<string, Buffer>
let chat: FakeChat
beforeEach(() => {
  files = new Map()
})
afterEach(() => chat.close())

/** A sandbox that only takes files. */
const workspace: NonNullable<FakeChatOptions['workspace']> = (_log, epoch) => ({
  containerId: 'c',
  epoch,
  listTools: async () => [],
  resolve: async (paths) => paths.map((path) => ({ path, is: files.has(path) ? 'file' : 'new' })),
  callUnrecorded: write,
  saveFiles: async () => {},
  applyChanges: async () => null,
  change: () => Promise.reject(new Error('not in this test')),
  recordChange: async () => {},
  runTool: () => Promise.reject(new Error('not in this test'))
})
const write: Workspace['callUnrecorded'] = async (_name, { path, content, append }) => {
  const before = append === true ? (files.get(String(path)) ?? Buffer.alloc(0)) : Buffer.alloc(0)
  files.set(String(path), Buffer.concat([before, Buffer.from(String(content), 'base64')]))
  return { content: [] }
}

const put = (bytes: Buffer, { contents }: { contents: ContentStore } = chat) => contents.putContent('s1', bytes)
const question = () => chat.requests.at(-1)?.messages.findLast(({ role }) => role === 'user')

describe('a message with files', () => {
  // Checked: with the whole name, the model is told a path that leads out.
  it('puts them into the workspace first, and the model is shown what it can look at', async () => {
    chat = await fakeChat({ workspace })
    files.set('attachments/photo.png', Buffer.from('another one'))
    const big = Buffer.alloc(2_500_000, 0)
    const attachments = [
      { id: await put(image), name: '../../photo.png' },
      { id: await put(big), name: 'data.bin' },
      { id: await put(Buffer.from('Buy milk.')), name: 'no\u202etes.txt' }
    ]
    await chat.chat.send('s1', { text: '', attachments })
    await chat.until('turn:end')
    expect([...files.keys()]).toEqual([
      'attachments/photo.png',
      'attachments/photo-2.png',
      'attachments/data.bin',
      'attachments/notes.txt'
    ])
    expect(files.get('attachments/photo-2.png')).toEqual(image)
    expect(files.get('attachments/data.bin')?.equals(big)).toBe(true)
    expect(question()).toMatchObject({
      text: '',
      note: expect.stringMatching(
        /photo\.png" \(image\/png, 30×20, \d+ bytes\)\. It is in .* "attachments\/photo-2\.png"/
      ),
      files: [
        { name: 'photo.png', mediaType: 'image/png', width: 30, height: 20 },
        { name: 'notes.txt', mediaType: 'text/plain' }
      ]
    })
    const { readFile } = chat.requests[0] ?? {}
    expect(await readFile?.(attachments[0]?.id ?? '')).toEqual(image)
    const [user] = (await chat.chat.transcript('s1')).entries
    expect(user).toMatchObject({ kind: 'user', files: [{ path: 'attachments/photo-2.png' }, {}, {}] })
  })

  it('goes to the model without a sandbox too, and both are told', async () => {
    chat = await fakeChat()
    await chat.chat.send('s1', { text: 'What is it?', attachments: [{ id: await put(image), name: 'a.png' }] })
    await chat.until('turn:end')
    await chat.until('session:notice', ({ code }) => code === 'attachments_not_saved')
    expect(chat.requests).toHaveLength(1)
    expect(question()).toMatchObject({
      note: expect.stringContaining('not in the workspace'),
      files: [{ name: 'a.png' }]
    })
  })

  // Checked: with a store that all sessions share, the message is sent.
  it('is refused if a file is not stored in this session, or a smaller version is not one', async () => {
    chat = await fakeChat({ workspace })
    const elsewhere = await chat.contents.putContent('s2', image)
    const sent = (attachment: { id: string; name: string; view?: string }) =>
      chat.chat.send('s1', { text: 'x', attachments: [attachment] })
    await expect(sent({ id: elsewhere, name: 'a.png' })).rejects.toMatchObject({ code: 'attachment_unknown' })
    const text = await put(Buffer.from('text'))
    await expect(sent({ id: await put(image), name: 'a.png', view: text })).rejects.toMatchObject({
      code: 'attachment_unknown'
    })
    expect((await chat.chat.transcript('s1')).entries).toEqual([])
  })

  it('keeps its files when the answer is tried again, and saves them once', async () => {
    chat = await fakeChat({ workspace })
    await chat.chat.send('s1', { text: 'go', attachments: [{ id: await put(image), name: 'a.png' }] })
    await chat.until('turn:end')
    await chat.chat.retry('s1', {})
    await chat.until('turn:end', ({ turnId }) => turnId === 't2')
    expect(question()).toMatchObject({ files: [{ name: 'a.png' }], note: expect.stringContaining('attachments/a.png') })
    expect([...files.keys()]).toEqual(['attachments/a.png'])
  })

  it('shows the model a smaller version of a large image', async () => {
    chat = await fakeChat({ workspace })
    const view = await put(pngOf(3, 2))
    await chat.chat.send('s1', { text: 'go', attachments: [{ id: await put(image), name: 'a.png', view }] })
    await chat.until('turn:end')
    expect(question()).toMatchObject({ files: [{ id: view, width: 3, name: 'a.png' }] })
    expect(files.get('attachments/a.png')).toEqual(image)
  })
})

it('shows the model an image that a tool returned', async () => {
  const id = 'a'.repeat(64)
  const file = { id, mediaType: 'image/png', size: image.length, width: 30, height: 20 }
  const source = {
    server: 'shots',
    list: async () => [{ name: 'shoot', inputSchema: {} }],
    call: async () => ({ content: [{ type: 'image', mimeType: 'image/png', file }] })
  }
  chat = await fakeChat({
    policy: () => 'allow',
    sources: [source],
    model: (_, step) => [step === 0 ? called('shots__shoot') : said('Nice.')]
  })
  await chat.chat.send('s1', { text: 'go' })
  await chat.until('turn:end')
  const answers = chat.requests.at(-1)?.messages.at(-1)
  expect(answers).toMatchObject({
    role: 'tool',
    answers: [{ text: expect.stringContaining('30×20'), files: [{ id, mediaType: 'image/png' }] }]
  })
})
