import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SessionEvent } from '../../contract/events.ts'
import { ROUTER, WORKSPACE } from '../../contract/own-sources.ts'
import { type OfferedTool, offerTools } from '../calls/offered-tool.ts'
import { EXECUTE, FIND_TOOL, ROUTER_TOOLS } from '../calls/router-tools.ts'
import { chooseTools, offeredBefore, type ToolName, usedTools } from './tool-choice.ts'

const NO_LIMIT = Number.POSITIVE_INFINITY
const names = (count: number) => Array.from({ length: count }, (_, at) => `t${at}`)

/** The sandbox, our own tools, and these servers with as many tools. */
function offer(servers: Record<string, number>): OfferedTool[] {
  const taken = new Set<string>()
  const plain = (tools: string[]) => tools.map((name) => ({ name, inputSchema: { type: 'object' } }))
  return [
    ...offerTools(WORKSPACE, plain(['read_file', 'execute_command']), taken),
    ...offerTools(ROUTER, ROUTER_TOOLS, taken),
    ...Object.entries(servers).flatMap(([server, count]) => offerTools(server, plain(names(count)), taken))
  ]
}

const limited = (maxTools: number) => ({ maxTools, maxTokens: NO_LIMIT })
const shown = (tools: readonly ToolName[]) => tools.map(({ server, name }) => `${server}/${name}`)
const OURS = [`${ROUTER}/${FIND_TOOL}`, `${ROUTER}/${EXECUTE}`]
const SANDBOX = [`${WORKSPACE}/read_file`, `${WORKSPACE}/execute_command`]

describe('the tools that a model is offered', () => {
  it('are all of them, without our own, as long as they fit', () => {
    const { tools, added, isPartial } = chooseTools(offer({ a: 3, b: 5 }), [], [], limited(10))
    expect(shown(tools)).toEqual([...SANDBOX, 'a/t0', 'a/t1', 'a/t2', ...names(5).map((name) => `b/${name}`)])
    expect(added).toHaveLength(8)
    expect(isPartial).toBe(false)
  })

  it('are the sandbox, our own, and the wanted ones in their order, if there are too many', () => {
    const wanted = [
      { server: 'b', name: 't7' },
      { server: 'gone', name: 't0' },
      { server: 'a', name: 't1' }
    ]
    const { tools, added, isPartial } = chooseTools(offer({ a: 9, b: 9 }), [], wanted, limited(10))
    expect(shown(tools)).toEqual([...SANDBOX, ...OURS, 'b/t7', 'a/t1'])
    expect(shown(added)).toEqual([...OURS, 'b/t7', 'a/t1'])
    expect(isPartial).toBe(true)
  })

  it('keep what was offered before, in the same place, and never exceed the limit', () => {
    const server = fc.constantFrom('a', 'b', 'c')
    const name = fc.record({ server, name: fc.constantFrom(...names(12)) })
    const turn = fc.record({ wanted: fc.array(name, { maxLength: 9 }), size: fc.constantFrom(2, 12) })
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 8 }), fc.integer({ min: 8, max: 20 }), (turns, max) => {
        let before: ToolName[] = []
        let last: string[] = []
        let isPartial = false
        for (const { wanted, size } of turns) {
          // Servers come and go, but those that were there stay.
          const choice = chooseTools(offer({ a: 12, b: size, c: 12 }), before, wanted, limited(max))
          expect(choice.tools.length).toBeLessThanOrEqual(max)
          before = [...before, ...choice.added]
          const now = shown(choice.tools)
          const there = new Set(shown(offer({ a: 12, b: size, c: 12 })))
          if (isPartial)
            expect(now.filter((each) => last.includes(each))).toEqual(last.filter((each) => there.has(each)))
          isPartial = choice.isPartial
          last = now
        }
        expect(new Set(shown(before)).size).toBe(before.length)
      })
    )
  })

  it('begin with those that all were offered before there were too many', () => {
    const first = chooseTools(offer({ a: 5 }), [], [], limited(10))
    const next = chooseTools(offer({ a: 5, b: 30 }), first.added, [{ server: 'b', name: 't3' }], limited(10))
    expect(shown(next.tools)).toEqual([...shown(first.tools), ...OURS, 'b/t3'])
  })

  it('still have our own if the others fit again', () => {
    const first = chooseTools(offer({ a: 30 }), [], [{ server: 'a', name: 't9' }], limited(10))
    const next = chooseTools(offer({ a: 10 }), first.added, [], limited(20))
    expect(shown(next.tools).slice(0, 5)).toEqual([...SANDBOX, ...OURS, 'a/t9'])
    expect(next.tools).toHaveLength(14)
  })

  it('are all of them if they fit, whatever was offered before', () => {
    const first = chooseTools(offer({ a: 8 }), [], [], limited(10))
    expect(shown(chooseTools(offer({ b: 8 }), first.added, [], limited(10)).tools)).toEqual([
      ...SANDBOX,
      ...names(8).map((name) => `b/${name}`)
    ])
  })

  it('fit into their share of the context', () => {
    const large = { name: 'large', description: 'x'.repeat(3500), inputSchema: {} }
    const taken = new Set<string>()
    const all = [
      ...offerTools(ROUTER, ROUTER_TOOLS, taken),
      ...offerTools('a', [large, { ...large, name: 'more' }], taken)
    ]
    const wanted = [
      { server: 'a', name: 'large' },
      { server: 'a', name: 'more' }
    ]
    const { tools } = chooseTools(all, [], wanted, { maxTools: 40, maxTokens: 1900 })
    expect(shown(tools)).toEqual([...OURS, 'a/large'])
  })
})

it('reads the list from the log, and what was used from the calls', () => {
  const event = (tools: ToolName[]) => ({ type: 'tools:offered', data: { turnId: 't', tools } }) as SessionEvent
  const [a, b] = [
    { server: 's', name: 'a' },
    { server: 's', name: 'b' }
  ]
  expect(offeredBefore([event([a]), event([b])])).toEqual([a, b])
  const calls = [a, { server: WORKSPACE, name: 'read_file' }, { server: ROUTER, name: FIND_TOOL }]
  expect(usedTools(calls as never)).toEqual([a])
})
