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

  it('a single tool needs no rival', () => {
    expect(trained([['book a table', 'only']])('book a table')[0]?.[0]).toBe('only')
  })
})
