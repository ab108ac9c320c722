import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { packageRoot } from '../lib/files/package-root.ts'
import type { RoutableTool } from './port.ts'
import { createRouter } from './router.ts'

/** The tools of eight real servers. */
const lines = readFileSync(join(packageRoot(), 'bench/sentences/tools.jsonl'), 'utf8').trim().split('\n')
const router = createRouter()
const byServer = Map.groupBy(
  lines.map((line): RoutableTool => JSON.parse(line)),
  ({ server }) => server
)
for (const [server, tools] of byServer) router.setServer(server, tools)

// Seen failing before: "search" and "knowledge" are the whole name of the other tool.
it.each([
  ['search the knowledge graph for Anna', 'memory', 'search_nodes'],
  ['look up Anna in the knowledge graph', 'memory', 'search_nodes'],
  ['search the knowledge base for aggregation', 'mongodb', 'search-knowledge'],
  ['search knowledge about indexes', 'mongodb', 'search-knowledge']
])('takes two words that belong together as one thing: %s', (request, server, tool) => {
  expect(router.find(request).matches[0]).toMatchObject({ server, tool })
})

// Seen failing before: a tool that deletes came first, with a confidence of 0.91 and 0.88.
it.each(['search the knowledge graph for old things', 'search the knowledge graph for new ideas'])(
  'one past choice does not turn a search into another tool: %s',
  (request) => {
    router.learn({
      request: 'search the knowledge graph for old things',
      server: 'memory',
      tool: 'delete_entities',
      at: 1
    })
    expect(router.find(request).matches[0]).toMatchObject({ server: 'memory', tool: 'search_nodes' })
    router.forgetUsage()
  }
)
