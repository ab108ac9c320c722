import { describe, expect, it } from 'vitest'
import { AT_ONCE, createUsageMemory, SLICE_OPERATIONS } from './usage-memory.ts'
import { inSlices, training } from './usage-model.ts'
import { createUsageStore } from './usage-store.ts'

function trained(uses: [request: string, tool: string][]) {
  const memory = createUsageMemory(1000, AT_ONCE)
  uses.forEach(([request, tool], at) => {
    memory.learn({ request, server: 's', tool, at }, tool)
  })
  return (request: string): [string, number][] =>
    [...(memory.opinion(request)?.byTool ?? [])]
      .map(([tool, { pull }]): [string, number] => [tool, pull])
      .sort(([, a], [, b]) => b - a)
}

describe('the linear model over past requests', () => {
  it('learns which of two shared words distinguishes the tools', () => {
    // Both tools are asked with "report" and "sales"; only the verb decides, against the more frequent tool too.
    const uses: [string, string][] = []
    for (let turn = 0; turn < 12; turn += 1) uses.push([`draw the sales report number ${turn}`, 'chart'])
    for (let turn = 0; turn < 3; turn += 1) uses.push([`mail the sales report number ${turn}`, 'post'])
    const ask = trained(uses)
    expect(ask('mail the sales report number 40')[0]?.[0]).toBe('post')
    expect(ask('draw the sales report number 41')[0]?.[0]).toBe('chart')
  })

  it('separates the examples it was trained on', () => {
    const topics = ['weather in', 'trains to', 'hotels in', 'news about', 'music from']
    const places = ['rome', 'paris', 'oslo', 'cairo', 'lima']
    const uses = topics.flatMap((topic) => places.map((place): [string, string] => [`${topic} ${place}`, topic]))
    const ask = trained(uses)
    for (const [request, tool] of uses) expect(ask(request)[0]?.[0], request).toBe(tool)
  })

  it('a word that is new since the training does not weaken known ones', () => {
    const memory = createUsageMemory(1000, AT_ONCE)
    const learn = (request: string, tool: string, at: number) => memory.learn({ request, server: 's', tool, at }, tool)
    for (let at = 0; at < 40; at += 1) learn(`${at % 2 ? 'mail' : 'draw'} report ${at}`, at % 2 ? 'post' : 'chart', at)
    const before = memory.opinion('mail report')?.byTool.get('post')?.pull ?? 0
    learn('zeppelin', 'post', 40)
    const pull = memory.opinion('zeppelin mail report')?.byTool.get('post')?.pull ?? 0
    expect(before).toBeGreaterThan(0)
    expect(pull).toBeGreaterThan(0)
  })

  it('a single tool needs no rival', () => {
    expect(trained([['book a table', 'only']])('book a table')[0]?.[0]).toBe('only')
  })
})

describe('training between answers', () => {
  const uses = Array.from({ length: 600 }, (_, at) => ({
    request: `please ${at % 7 ? 'draw' : 'mail'} the report number ${at} about topic ${at % 40}`,
    server: 's',
    tool: at % 7 ? `chart ${at % 40}` : 'post',
    at
  }))

  it('is cut into slices with a limited number of operations', () => {
    const store = createUsageStore()
    for (const use of uses) store.add(use, use.tool)
    let total = 0
    let longest = 0
    const steps = [...training(store)]
    for (const step of steps) {
      total += step
      longest = Math.max(longest, step)
    }
    expect(total).toBeGreaterThan(5 * SLICE_OPERATIONS)
    expect(longest).toBeLessThan(SLICE_OPERATIONS / 10)
    const waiting: (() => void)[] = []
    let done = false
    let spent = 0
    const counted = training(store)
    const walk = (function* () {
      for (const step of counted) {
        spent += step
        yield step
      }
    })()
    inSlices(
      walk,
      SLICE_OPERATIONS,
      (slice) => waiting.push(slice),
      () => {
        done = true
      }
    )
    for (let slice = waiting.shift(); slice; slice = waiting.shift()) {
      spent = 0
      slice()
      expect(spent).toBeLessThan(SLICE_OPERATIONS + longest)
    }
    expect(done).toBe(true)
  })

  it('continues while examples come and go, stops on clear, and answers from the previous weights meanwhile', () => {
    const waiting: (() => void)[] = []
    const memory = createUsageMemory(600, (slice) => waiting.push(slice))
    const pull = () => memory.opinion('mail the report')?.byTool.get('post')?.pull
    for (const use of uses) memory.learn(use, use.tool)
    expect(pull()).toBe(0)
    expect(waiting).toHaveLength(1)
    for (let slice = waiting.shift(), at = 0; slice; slice = waiting.shift(), at += 1) {
      memory.learn({ request: `sing song ${at}`, server: 's', tool: 'sing', at }, 'sing')
      slice()
    }
    const first = pull() ?? 0
    expect(first).toBeGreaterThan(0)
    // A second one is under way: the first goes on answering until it is done.
    for (const use of uses.slice(0, 200)) memory.learn(use, use.tool)
    expect(pull()).toBeGreaterThan(0)
    expect(waiting).toHaveLength(1)
    for (const value of memory.opinion('mail the report')?.byTool.values() ?? []) expect(value.pull).not.toBeNaN()
    memory.clear()
    waiting.shift()?.()
    expect(waiting).toEqual([])
    expect(pull()).toBeUndefined()
  })
})
