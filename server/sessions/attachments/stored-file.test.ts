import { expect, it, vi } from 'vitest'
import { FakeContentStore } from '../../storage/fake-content-store.ts'
import { lookUpAttachments, namedContents, removeUnsent, storeFile } from './stored-file.ts'

const event = (seq: number, data: Record<string, unknown>) => ({ seq, at: 0, type: 'user:message', data })

it.each([
  ['an attachment', (id: string) => ({ attachments: [{ id }] })],
  ['the smaller version of one', (id: string) => ({ attachments: [{ id: 'x', view: { id } }] })],
  ['an image of a result', (id: string) => ({ content: [{ type: 'image', file: { id } }] })],
  ['an image of a result in a fork', (id: string) => ({ result: { content: [{ type: 'image', file: { id } }] } })]
])('keeps a file that the conversation names, however far back: %s', async (_, named) => {
  const contents = new FakeContentStore()
  const { id } = await storeFile(contents, 's', Buffer.from('hello'))
  let log = [1, 2, 3].map((seq) => event(seq, seq === 2 ? named(id) : { text: 'hello' }))
  const events = {
    // One event at a time, as a log with large ones returns them.
    read: async (_id: string, { after = 0 } = {}) => log.filter(({ seq }) => seq > after).slice(0, 1)
  }
  await removeUnsent(contents, events, 's', id)
  expect(await contents.getContent('s', id)).toBeDefined()
  log = log.filter(({ seq }) => seq !== 2)
  await removeUnsent(contents, events, 's', id)
  expect(await contents.getContent('s', id)).toBeUndefined()
})

it('keeps a file that a message names while it is being removed', async () => {
  const contents = new FakeContentStore()
  const { id } = await storeFile(contents, 's', Buffer.from('hello'))
  const log = [event(1, { text: 'hello' })]
  const events = {
    async read(_id: string, { after = 0 } = {}) {
      const page = log.filter(({ seq }) => seq > after)
      if (page.length === 0 && log.length === 1) log.push(event(2, { attachments: [{ id }] }))
      return page
    }
  }
  await removeUnsent(contents, events, 's', id)
  expect(String(await contents.getContent('s', id))).toBe('hello')
})

it('stores a file again when a message is about to name it', async () => {
  const contents = new FakeContentStore()
  const { id } = await storeFile(contents, 's', Buffer.from('hello'))
  const put = vi.spyOn(contents, 'putContent')
  await lookUpAttachments(contents, 's', [{ id, name: 'a' }])
  expect(put).toHaveBeenCalledExactlyOnceWith('s', Buffer.from('hello'))
})

it('finds in all logs which contents they name', async () => {
  const ids = [1, 2, 3, 4].map((n) => String(n).repeat(64))
  const [one = '', two = '', three = ''] = ids
  const logs: Record<string, ReturnType<typeof event>[]> = {
    s: [
      event(1, { text: 'x' }),
      event(2, { attachments: [{ id: one }] }),
      event(3, { args: JSON.stringify({ id: two }) })
    ],
    'run of s': [event(1, { result: { content: [{ type: 'image', file: { id: three } }] } })]
  }
  const events = {
    read: async (id: string, { after = 0 } = {}) => (logs[id] ?? []).filter(({ seq }) => seq > after).slice(0, 1)
  }
  expect(await namedContents(events, ['s', 'run of s', 'none'], new Set(ids))).toEqual(new Set([one, two, three]))
})
