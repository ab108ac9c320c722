import { afterEach, describe, expect, it, vi } from 'vitest'
import { ROUTER } from '../../../../contract/own-sources.ts'
import { PATIENCE_MS } from '../../../../tests/support/patience-ms.ts'
import type { ToolSource } from '../../../calls/tool-source.ts'
import type { StepEvent, StepRequest } from '../../../models/port.ts'
import { createPolicy } from '../../../policy/approval-policy.ts'
import type { FindTools } from '../../turns/router-source.ts'
import { called, type FakeChat, type FakeChatOptions, fakeChat, said } from '../fake-chat.ts'

let fake: FakeChat
afterEach(() => fake.close())

const calls: unknown[] = []

/** A server with tools `t0`, `t1`, … */
function server(name: string, count: number): ToolSource {
  return {
    server: name,
    list: async () =>
      Array.from({ length: count }, (_, at) => ({
        name: `t${at}`,
        description: `Does ${at}.`,
        inputSchema: { type: 'object', properties: { [`p${at}`]: { type: 'string' } } }
      })),
    async call({ name: tool, args }) {
      calls.push([name, tool, args])
      return { content: [{ type: 'text', text: 'done' }] }
    }
  }
}

/** Finds the tools that a message names, as `a/t3`. */
const find: FindTools = async (request) => {
  const named = [...request.matchAll(/(\w+)\/(t\d+)/g)].map(([, at = '', tool = '']) => ({ server: at, tool }))
  return {
    matches: named.map((each) => ({ ...each, confidence: 0.5, description: '' })),
    abstained: named.length === 0
  }
}

/** The model makes the calls that the last message has as JSON, one per step. */
function obedient({ messages }: StepRequest): StepEvent[] {
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const message = messages[asked]
  const text = message?.role === 'user' ? message.text : ''
  const wishes = text.startsWith('[') ? JSON.parse(text) : []
  const at = messages.slice(asked).filter(({ role }) => role === 'tool').length
  const wish = wishes[at]
  return wish ? [called(wish.name, JSON.stringify(wish.args ?? {}), `${messages.length}-${at}`)] : [said('ok')]
}

async function open(more: Partial<FakeChatOptions> = {}): Promise<void> {
  calls.length = 0
  const sources = [server('a', 20), server('b', 20)]
  fake = await fakeChat({ model: obedient, sources, find, options: { maxTools: 12 }, ...more })
}

/** Returns the names of the tools in the turn's last request. */
async function turn(text: string): Promise<string[]> {
  const ends = async () => (await fake.log()).filter(({ type }) => type === 'turn:end').length
  const before = await ends()
  await fake.chat.send('s1', { text, id: `m${before}` })
  await vi.waitFor(async () => expect(await ends()).toBe(before + 1), PATIENCE_MS)
  return (fake.requests.at(-1)?.tools ?? []).map(({ name }) => name)
}

describe('a chat with more tools than the model is offered', () => {
  it('offers the best matches, and the list only grows, in its order', async () => {
    await open()
    const first = await turn('please a/t3 and b/t19')
    expect(first).toEqual(['find_tool', 'execute', 'a__t3', 'b__t19'])
    const next = await turn('now a/t3 and a/t0')
    expect(next).toEqual([...first, 'a__t0'])
    const full = await turn(Array.from({ length: 20 }, (_, at) => `b/t${at}`).join(' '))
    expect(full.slice(0, next.length)).toEqual(next)
    expect(full).toHaveLength(12)
    expect(await turn('now a/t7')).toEqual(full)
    const stored = (await fake.log()).filter(({ type }) => type === 'tools:offered')
    expect(stored.flatMap(({ data }) => data.tools)).toHaveLength(12)
    expect(fake.requests.every(({ system }) => system === fake.requests[0]?.system)).toBe(true)
  })

  it('starts anew with a fresh history', async () => {
    await open()
    await turn('please a/t3')
    await fake.chat.reset('s1')
    expect(await turn('please b/t4')).toEqual(['find_tool', 'execute', 'b__t4'])
  })

  // Checked: if the rule is asked about `execute` itself, the denied tool gets a card.
  it('runs execute as the call that it names: card, hash, rule and audit are about that tool', async () => {
    const rows: unknown[] = []
    const audit = {
      begin: ({ server: at, tool, args }: { server: string; tool: string; args: unknown }) => {
        rows.push([at, tool, args])
        return () => {}
      }
    } as never
    const policy = createPolicy([
      { glob: 'a/t5', rule: 'allow' },
      { glob: 'a/t6', rule: 'deny' }
    ])
    await open({ policy, audit })
    const execute = (tool: string) => ({ name: 'execute', args: { server: 'a', tool, params: { x: 1 } } })
    const going = turn(JSON.stringify([execute('t5'), execute('t6'), execute('t7')]))
    const card = await fake.until('tool:approval_required', ({ name }) => name === 't7')
    expect(card.data).toMatchObject({ server: 'a', name: 't7', args: { x: 1 } })
    const { callId, hash } = card.data as { callId: string; hash: string }
    await fake.chat.decide('s1', { callId, approved: true, hash })
    await going
    const decided = (await fake.log()).filter(({ type }) => type === 'tool:approval_resolved')
    expect(decided.map(({ data }) => [data.by, data.approved])).toEqual([
      ['policy', true],
      ['policy', false],
      ['human', true]
    ])
    expect(calls).toEqual([
      ['a', 't5', { x: 1 }],
      ['a', 't7', { x: 1 }]
    ])
    expect(rows).toEqual(calls)
    // The vendor gets back what the model said, and the tools that were used are offered from the next message on.
    expect(JSON.stringify(fake.requests.at(-1)?.messages)).toContain('"name":"execute"')
    expect(await turn('thanks')).toEqual(['find_tool', 'execute', 'a__t5', 'a__t6', 'a__t7'])
  })

  it('finds tools without asking the person, with their parameters, and none that a rule denies', async () => {
    await open({ policy: createPolicy([{ glob: 'a/t6', rule: 'deny' }]) })
    await turn(JSON.stringify([{ name: 'find_tool', args: { query: 'a/t6 or b/t9 or gone/t1' } }]))
    const [asked] = (await fake.log()).filter(({ type }) => type === 'tool:approval_required')
    expect(asked?.data).toMatchObject({ server: ROUTER, name: 'find_tool' })
    const { data } = await fake.until('tool:result')
    const [{ text }] = data.content as [{ text: string }]
    expect(JSON.parse(text)).toEqual({
      matches: [
        {
          server: 'b',
          tool: 't9',
          confidence: 0.5,
          description: 'Does 9.',
          inputSchema: { type: 'object', properties: { p9: { type: 'string' } } }
        }
      ],
      abstained: false
    })
  })

  it('tells the model what is wrong with a call that names no tool', async () => {
    await open()
    await turn(JSON.stringify([{ name: 'execute', args: { server: 'a', tool: 't99', params: {} } }]))
    expect(JSON.stringify(fake.requests.at(-1)?.messages)).toContain('no tool \\"t99\\" on the server \\"a\\"')
    expect(calls).toEqual([])
  })

  it('offers what it can if the router fails', async () => {
    await open({ find: () => Promise.reject(new Error('no router')) })
    expect(await turn('please a/t3')).toEqual(['find_tool', 'execute'])
  })
})

it('offers all tools without the two of ours if there are few', async () => {
  await open({ sources: [server('a', 2)] })
  expect(await turn('hi')).toEqual(['a__t0', 'a__t1'])
})
