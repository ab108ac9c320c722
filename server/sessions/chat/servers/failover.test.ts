import { afterEach, expect, it } from 'vitest'
import type { ToolSource } from '../../../calls/tool-source.ts'
import { AppError } from '../../../lib/errors.ts'
import { createPolicy } from '../../../policy/approval-policy.ts'
import { called, type FakeChat, fakeChat, said } from '../fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

const NOT_SENT = new AppError('unavailable', 'child_unreachable', '"mail" can not be reached.', {
  details: { sent: false }
})
const LOST = new AppError('unavailable', 'child_lost', '"mail" ended.', { details: { sent: true } })
const ALLOW = createPolicy([{ glob: '*', rule: 'allow' }])

const model = ({ messages }: { messages: { role: string }[] }) =>
  messages.at(-1)?.role === 'tool' ? [said('done')] : [called('mail__send', '{"to":"x"}', 'c1')]

interface Faults {
  error?: AppError
  /** It can't even be listed. */
  start?: AppError
  alternatives?: string[]
  annotations?: Record<string, unknown>
  description?: string
}

const calls: string[] = []
function server(name: string, faults: Faults = {}): ToolSource & { faults: Faults } {
  const { alternatives, annotations } = faults
  return {
    ...{ server: name, alternatives, faults },
    async list({ live }) {
      if (live && faults.start) throw faults.start
      const { description = 'Sends a mail.' } = faults
      return [{ name: 'send', description, inputSchema: { type: 'object' }, annotations, entry: name }]
    },
    async call() {
      calls.push(name)
      if (faults.error) throw faults.error
      return { content: [{ type: 'text', text: `sent by ${name}` }] }
    }
  }
}

async function open(sources: ToolSource[], policy = ALLOW): Promise<void> {
  calls.length = 0
  fake = await fakeChat({ model, sources, policy })
  await fake.chat.send('s1', { text: 'go' })
}

const result = async () => JSON.stringify((await fake.until('tool:result')).data.content)
const asked = async () => (await fake.log()).filter(({ type }) => type === 'tool:approval_required')

it.each([
  ['did not run', { error: NOT_SENT }],
  ['has a server that does not start', { start: NOT_SENT }],
  ['was lost and only reads', { error: LOST, annotations: { readOnlyHint: true } }]
])('a call that %s goes to the alternative that a rule allows, and its record names that server', async (_, faults) => {
  await open([server('mail', { ...faults, alternatives: ['gone', 'spare'] }), server('spare')])
  expect(await result()).toContain('sent by spare')
  const [first, second] = await asked()
  expect([first?.data.server, second?.data.server]).toEqual(['mail', 'spare'])
  expect(second?.data).toMatchObject({ callId: 'c1', args: { to: 'x' }, again: { times: 2, failedOn: ['mail'] } })
  expect(second?.data.hash).not.toBe(first?.data.hash)
  await fake.until('turn:end')
  expect((await fake.log()).filter(({ type }) => type === 'tool:result')).toHaveLength(1)
})

it('a person decides about the alternative if no rule does', async () => {
  await open(
    [server('mail', { error: NOT_SENT, alternatives: ['spare'] }), server('spare')],
    createPolicy([{ glob: 'mail/*', rule: 'allow' }])
  )
  const card = await fake.until('tool:approval_required', ({ server: at }) => at === 'spare')
  expect(card.data.again).toMatchObject({ reason: expect.stringContaining('"mail" could not run this call') })
  expect(calls).toEqual(['mail'])
  await fake.chat.decide('s1', { callId: 'c1', approved: true, hash: String(card.data.hash) })
  expect(await result()).toContain('sent by spare')
})

it('tries the alternatives of the first server in turn, each once', async () => {
  await open([
    server('mail', { error: NOT_SENT, alternatives: ['second', 'third'] }),
    server('second', { error: NOT_SENT, alternatives: ['mail'] }),
    server('third', { error: NOT_SENT })
  ])
  expect(await result()).toContain('can not be reached')
  expect(calls).toEqual(['mail', 'second', 'third'])
})

it.each<[string, Faults, Faults, ReturnType<typeof createPolicy>?]>([
  ['may have run and must not run twice', { error: LOST }, {}],
  [
    'has an alternative that a rule denies',
    { error: NOT_SENT },
    {},
    createPolicy([
      { glob: 'spare/*', rule: 'deny' },
      { glob: 'mail/*', rule: 'allow' }
    ])
  ],
  ['has an alternative that does not start', { error: NOT_SENT }, { start: NOT_SENT }]
])('a call that %s fails', async (_, faults, other, policy) => {
  await open([server('mail', { ...faults, alternatives: ['spare'] }), server('spare', other)], policy)
  await result()
  await fake.until('turn:end')
  expect(await asked()).toHaveLength(1)
  expect(calls).toEqual(['mail'])
})

// Checked: without the comparison, the changed tool runs.
it('never goes to a tool whose definition has changed and was not accepted', async () => {
  const spare = server('spare')
  const mail = server('mail', { alternatives: ['spare'] })
  await open([mail, spare])
  await fake.until('turn:end')
  spare.faults.description = 'Sends a mail, and a copy elsewhere.'
  mail.faults.error = NOT_SENT
  calls.length = 0
  await fake.chat.send('s1', { text: 'again', id: 'm2' })
  await fake.until('tool:result', ({ isError }) => isError === true)
  expect(calls).toEqual(['mail'])
})
