import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import type { ScriptedAnswer, ScriptedReply } from '../../../tests/fixtures/model-servers/model-reply.ts'
import { requestFaults } from '../../../tests/fixtures/model-servers/request-faults.ts'
import { type Connected, connect, WIRES, type Wire } from '../../../tests/fixtures/model-servers/wires.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { type FakeChat, fakeChat } from './fake-chat.ts'

/** Between all pairs of vendors, a conversation with everything in it is carried over in a form that a strict vendor accepts. */

const open: Connected[] = []
let fake: FakeChat | undefined
afterEach(async () => {
  await fake?.close()
  fake = undefined
  await Promise.all(open.splice(0).map(({ server }) => server.close()))
})

const SIGNATURE = 'c2lnbmF0dXJlLW9mLXRoZS1maXJzdC12ZW5kb3I='
const box: ToolSource = {
  server: 'box',
  list: async () => ['safe', 'ask'].map((name) => ({ name, inputSchema: { type: 'object' } })),
  call: async ({ args }) => ({
    content: [{ type: 'text', text: `ran 🦊 ${JSON.stringify(args)}` }],
    isError: 'fail' in args
  })
}

const ACTIONS = [
  'text',
  'call',
  'two calls',
  'failing call',
  'rejected',
  'stopped',
  'broken call',
  'cut',
  'error'
] as const
type Action = (typeof ACTIONS)[number]

class Conversation {
  readonly chat: FakeChat
  readonly wires = new Map<string, Connected>()
  #calls = 0
  #turns = 0
  #wire: Wire

  private constructor(chat: FakeChat, wire: Wire, connected: Map<string, Connected>) {
    this.chat = chat
    this.#wire = wire
    this.wires = connected
  }

  static async begin(wires: Wire[]): Promise<Conversation> {
    const connected = new Map<string, Connected>()
    for (const wire of wires) {
      const one = await connect(wire, { models: [] })
      open.push(one)
      connected.set(wire.model, one)
    }
    fake = await fakeChat({
      model: (request) => (connected.get(request.model) as Connected).models.step(request),
      sources: [box],
      policy: createPolicy([{ glob: 'box/safe', rule: 'allow' }]),
      options: { effort: 'medium' }
    })
    const [first] = wires as [Wire]
    await fake.chat.selectModel('s1', first.model)
    return new Conversation(fake, first, connected)
  }

  get requests() {
    return this.wires.get(this.#wire.model)?.server.requests ?? []
  }

  async act(action: Action): Promise<void> {
    const { chat, until } = this.chat
    this.wires.get(this.#wire.model)?.server.add(...this.#replies(action))
    const { turnId } = await chat.send('s1', { text: `Please do: ${action}.` })
    this.#turns += 1
    if (action === 'rejected' || action === 'stopped') {
      const { data } = await until('tool:approval_required', (call) => call.turnId === turnId && call.name === 'ask')
      if (action === 'stopped') await chat.cancel('s1')
      else await chat.decide('s1', { callId: String(data.callId), approved: false, reason: 'Not now.' })
    }
    await until('turn:end', (end) => end.turnId === turnId)
  }

  async switchTo(wire: Wire, history?: 'keep' | 'fresh'): Promise<void> {
    await this.chat.chat.selectModel('s1', wire.model, { history })
    this.#wire = wire
  }

  #replies(action: Action): ScriptedReply[] {
    const thinking = { text: `I think about ${action}.`, signature: SIGNATURE }
    const done: ScriptedAnswer = { thinking, text: `Answer ${this.#turns}: done with ${action} 🦊.` }
    const call = (name: string, args = '{"a":1}') => ({ id: this.#id(), name, args })
    if (action === 'text') return [done]
    if (action === 'call') return [{ thinking, toolCalls: [call('box__safe')] }, done]
    if (action === 'two calls') return [{ text: 'Two.', toolCalls: [call('box__safe'), call('box__safe')] }, done]
    if (action === 'failing call') return [{ thinking, toolCalls: [call('box__safe', '{"fail":true}')] }, done]
    if (action === 'rejected') return [{ thinking, text: 'May I?', toolCalls: [call('box__ask')] }, done]
    if (action === 'stopped') return [{ thinking, toolCalls: [call('box__ask'), call('box__safe')] }]
    if (action === 'broken call')
      return [{ toolCalls: [call('no such.tool'), call('box__safe', this.#broken())] }, done]
    if (action === 'cut') return [{ text: ['Half an', ' answer'], delivery: { stopAfter: 'Half an', ending: 'reset' } }]
    return [{ status: 403, body: {} }]
  }

  /** As the vendor writes them: Gemini often sends none, and some servers number the calls of every answer from 0. */
  #id(): string {
    this.#calls += 1
    if (this.#wire.name === 'gemini') return ''
    if (this.#wire.name === 'openai-compatible chat') return `functions.box:${this.#calls}`
    return `${this.#wire.name === 'anthropic' ? 'toolu_01' : 'call_'}${'x'.repeat(20)}${this.#calls}`
  }

  #broken(): string {
    return this.#wire.name === 'gemini' ? '{}' : '{"a":'
  }
}

const bodyOf = (conversation: Conversation) => conversation.requests.at(-1)?.body
const pairs = WIRES.flatMap((from) => WIRES.filter((to) => to !== from).map((to) => ({ from, to })))

describe.each(pairs)('from $from.name to $to.name', ({ from, to }) => {
  it('carries everything over, and back again', async () => {
    const conversation = await Conversation.begin([from, to])
    for (const action of ACTIONS) await conversation.act(action)
    await conversation.switchTo(to, 'keep')
    await conversation.act('call')
    const [first, second] = conversation.requests.map(({ body }) => body)
    for (const body of [first, second]) {
      expect(requestFaults(to.name, body)).toEqual([])
      const text = JSON.stringify(body)
      for (const action of ACTIONS) expect(text).toContain(`Please do: ${action}.`)
      for (const said of ['done with two calls 🦊', 'Half an', 'ran 🦊', 'Not now.', 'stopped', 'no_such_tool'])
        expect(text).toContain(said)
    }
    // The first vendor's thoughts, signatures and ids stay at home.
    expect(JSON.stringify(first)).not.toMatch(/I think about|toolu_|call_x|functions\.box|rs_1|msg_1/)
    expect(JSON.stringify(first)).not.toContain(SIGNATURE)
    await conversation.switchTo(from, 'keep')
    await conversation.act('text')
    expect(requestFaults(from.name, bodyOf(conversation))).toEqual([])
    expect(JSON.stringify(bodyOf(conversation))).toContain('Please do: rejected.')
  })
})

it('stays valid for conversations of any order, over several switches', async () => {
  const leg = fc.record({ to: fc.nat(3), acts: fc.array(fc.constantFrom(...ACTIONS), { maxLength: 3 }) })
  const run = async (legs: { to: number; acts: Action[] }[]) => {
    const conversation = await Conversation.begin(WIRES)
    for (const { to, acts } of legs) {
      const wire = WIRES[to] as Wire
      await conversation.switchTo(wire, 'keep')
      for (const action of [...acts, 'text' as const]) {
        await conversation.act(action)
        expect(requestFaults(wire.name, bodyOf(conversation))).toEqual([])
      }
    }
    await fake?.close()
    fake = undefined
    await Promise.all(open.splice(0).map(({ server }) => server.close()))
  }
  await fc.assert(fc.asyncProperty(fc.array(leg, { minLength: 2, maxLength: 5 }), run), { numRuns: 15 })
})

it('starts afresh without "keep", and records how it went on', async () => {
  const [from, to] = WIRES as [Wire, Wire]
  const conversation = await Conversation.begin([from, to])
  await conversation.act('text')
  await conversation.switchTo(to)
  await conversation.act('text')
  expect(JSON.stringify(bodyOf(conversation)).match(/Please do/g)).toHaveLength(1)
  const { entries } = await conversation.chat.chat.transcript('s1')
  expect(entries.findLast(({ kind }) => kind === 'fresh-start')).toMatchObject({ model: to.model })
  await conversation.switchTo(from, 'keep')
  expect((await conversation.chat.chat.transcript('s1')).entries.at(-1)).toMatchObject({
    kind: 'model-switch',
    model: from.model
  })
  const log = await conversation.chat.log()
  expect(log.filter(({ type }) => type === 'model:selected').map(({ data }) => data.history)).toEqual([
    undefined,
    'fresh',
    'fresh',
    'keep'
  ])
})
