import { describe, expect, it } from 'vitest'
import { createUsageMemory } from './usage-memory.ts'

function trained(uses: [request: string, tool: string][]) {
  const memory = createUsageMemory(1000)
  uses.forEach(([request, tool], at) => {
    memory.learn({ request, server: 's', tool, at }, tool)
  })
  return (request: string): [string, number][] =>
    [...(memory.opinion(request)?.byTool ?? [])]
      .map(([tool, { pull }]): [string, number] => [tool, pull])
      .sort(([, a], [, b]) => b - a)
}

describe('the linear model over past requests', () => {
  it('learns which of two shared words tells the tools apart', () => {
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

  it('a word that is new since the training takes nothing from those it knows', () => {
    const memory = createUsageMemory(1000)
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
