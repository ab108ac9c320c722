/** Tests how a shutdown treats calls that run. On a cluster, every update of the deployment is a shutdown. */
import { afterEach, expect, it } from 'vitest'
import { called, type FakeChat, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

/** A turn whose call runs until `end` is called. */
async function running() {
  const { promise, resolve: end } = Promise.withResolvers<void>()
  const source = {
    server: 'mail',
    list: async () => [{ name: 'send', inputSchema: { type: 'object' } }],
    async call({ signal }: { signal?: AbortSignal }) {
      const cut = new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
      await Promise.race([promise, cut])
      return { content: [{ type: 'text', text: 'sent' }] }
    }
  }
  fake = await fakeChat({
    sources: [source],
    model: ({ messages }: { messages: { role: string }[] }) =>
      messages.at(-1)?.role === 'tool' ? [said('done')] : [called('mail__send', '{}')]
  })
  await fake.chat.send('s1', { text: 'go' })
  await fake.until('tool:approval_required')
  await fake.chat.decide('s1', { callId: 'call-mail__send', approved: true })
  await fake.until('tool:started')
  return end
}

const result = async () => (await fake.log()).find(({ type }) => type === 'tool:result')?.data

it('lets a call end that needs a moment, and begins nothing new', async () => {
  const end = await running()
  const stopped = fake.chat.stop()
  end()
  await stopped
  expect(await result()).toMatchObject({ isError: false, content: [{ text: 'sent' }] })
  expect((await fake.log()).map(({ type }) => type).at(-1)).toBe('tool:result')
})

it('waits for no call that needs longer, or that someone is in a hurry about', async () => {
  await running()
  await fake.chat.stop(AbortSignal.abort())
  expect(await result()).not.toEqual(expect.objectContaining({ isError: false }))
})
