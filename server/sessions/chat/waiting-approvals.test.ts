/** Tests how an answer or a switch of the model affects the other calls that wait for approval. */
import { afterEach, expect, it } from 'vitest'
import type { ToolSource } from '../../calls/tool-source.ts'
import { type FakeChat, type FakeChatOptions, fakeChat, said } from './fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

/** One step that asks for three mails and one deletion, then a last word. */
const fourCalls: NonNullable<FakeChatOptions['model']> = (_, step) => {
  const names = ['mail__send', 'mail__send', 'mail__delete', 'mail__send']
  const parts = names.map((name, at) => ({ type: 'tool-call' as const, callId: `c${at}`, name, args: `{"n":${at}}` }))
  const usage = { inputTokens: 1, outputTokens: 1 }
  return step % 2 === 0 ? [{ type: 'done', parts, finish: 'tool-calls', usage }] : [said('done')]
}

async function open(
  more: FakeChatOptions = {}
): Promise<{ source: ToolSource & { description: string }; ran: unknown[] }> {
  const ran: unknown[] = []
  const source = {
    server: 'mail',
    description: 'Sends a mail.',
    list: async () =>
      ['send', 'delete'].map((name) => ({ name, description: source.description, inputSchema: { type: 'object' } })),
    call: async ({ name, args }: { name: string; args: unknown }) => {
      ran.push([name, args])
      return { content: [] }
    }
  }
  fake = await fakeChat({ model: fourCalls, sources: [source], ...more })
  return { source, ran }
}

const asked = () => fake.until('tool:approval_required', ({ callId }) => callId === 'c3')
async function decisions(): Promise<Record<string, unknown>> {
  const resolved = (await fake.log()).filter(({ type }) => type === 'tool:approval_resolved')
  return Object.fromEntries(resolved.map(({ data: { callId, approved, by } }) => [callId, `${by}: ${approved}`]))
}
const always = (callId: string) => fake.chat.decide('s1', { callId, approved: true, remember: true })

it('“Always allow” approves the waiting calls of that tool, and their records name it', async () => {
  const { ran } = await open()
  await fake.chat.send('s1', { text: 'go' })
  await asked()
  await always('c1')
  expect(await decisions()).toEqual({ c0: 'session: true', c1: 'human: true', c3: 'session: true' })
  await fake.chat.decide('s1', { callId: 'c2', approved: false })
  await fake.until('turn:end')
  expect(ran).toHaveLength(3)
  expect(ran).not.toContainEqual(['delete', { n: 2 }])
})

// Checked: if the change is not checked, the waiting calls run.
it('“Always allow” covers no call whose card shows a changed definition', async () => {
  const { source, ran } = await open({ policy: () => 'allow' })
  await fake.chat.send('s1', { text: 'first' })
  await fake.until('turn:end', ({ turnId }) => turnId === 't1')
  const before = ran.length
  source.description = 'Sends a mail, and a copy to someone else.'
  await fake.chat.send('s1', { text: 'second' })
  const last = await fake.until(
    'tool:approval_required',
    ({ turnId, queuePosition }) => turnId === 't2' && queuePosition === 4
  )
  expect(last.data.definitionChange).toBeDefined()
  const [first] = (await fake.log()).filter(
    ({ type, data }) => type === 'tool:approval_required' && data.turnId === 't2'
  )
  await always(String(first?.data.callId))
  expect((await decisions())[String(last.data.callId)]).toBeUndefined()
  await fake.until('tool:result', ({ callId }) => callId === first?.data.callId)
  expect(ran.length).toBe(before + 1)
})

it('“Always allow” approves no waiting call that a rule has come to deny', async () => {
  let verdict: 'ask' | 'deny' = 'ask'
  const { ran } = await open({ policy: () => verdict })
  await fake.chat.send('s1', { text: 'go' })
  await asked()
  verdict = 'deny'
  await always('c1')
  expect(await decisions()).toEqual({ c1: 'human: true' })
  await fake.until('tool:result', ({ callId }) => callId === 'c1')
  expect(ran).toEqual([])
})

it('of “Always allow” and another answer at the same moment, each call gets one decision', async () => {
  const { ran } = await open()
  await fake.chat.send('s1', { text: 'go' })
  await asked()
  const reject = (callId: string) => fake.chat.decide('s1', { callId, approved: false })
  const answers = await Promise.allSettled([always('c0'), reject('c1'), reject('c2'), reject('c3')])
  expect(answers[0]?.status).toBe('fulfilled')
  const all = await decisions()
  expect(Object.keys(all).toSorted()).toEqual(['c0', 'c1', 'c2', 'c3'])
  await fake.until('turn:end')
  expect(ran).toHaveLength(Object.values(all).filter((decision) => String(decision).endsWith('true')).length)
})

it('a switch of the model that cancels more approvals than the person was told of is refused', async () => {
  await open()
  await fake.chat.send('s1', { text: 'go' })
  await asked()
  await expect(fake.chat.selectModel('s1', 'demo/other', { maxCancelled: 3 })).rejects.toMatchObject({
    code: 'approvals_waiting'
  })
  expect(await decisions()).toEqual({})
  await fake.chat.selectModel('s1', 'demo/other', { maxCancelled: 4 })
  const { data } = await fake.until('session:notice', ({ code }) => code === 'approvals_cancelled')
  expect(data.message).toBe('The model was switched to demo/other. This cancelled 4 calls that waited for approval.')
  const resolved = await fake.until('tool:approval_resolved')
  expect(resolved.data).toMatchObject({ by: 'cancel', reason: 'The model was switched to demo/other.' })
})

it('a fresh history says how many approvals it cancelled', async () => {
  await open()
  await fake.chat.send('s1', { text: 'go' })
  await asked()
  await fake.chat.reset('s1')
  const { data } = await fake.until('session:notice', ({ code }) => code === 'approvals_cancelled')
  expect(data.message).toBe('A fresh history was started. This cancelled 4 calls that waited for approval.')
})
