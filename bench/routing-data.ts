/** The public routing data sets: tools, requests with their right tools, past requests, and distractors. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { packageRoot } from '../server/lib/files/package-root.ts'
import type { RoutableTool, UsageExample } from '../server/routing/port.ts'

export interface LabelledRequest {
  query: string
  /** Right tools as `server::tool`; empty if no tool serves the request. */
  gold: string[]
}

export interface RoutingSet {
  name: string
  tools: RoutableTool[]
  requests: LabelledRequest[]
  usage: UsageExample[]
}

export interface StoredTool {
  server: string
  name: string
  description: string
  params?: string[]
}

export interface SetOptions {
  distractors?: boolean
  /** Past requests per tool that are learned first. */
  examplesPerTool?: number
  /** Use the requests that no tool serves instead of those that have an answer. */
  irrelevant?: boolean
  /** Ask the requests of this set, which the tools don't serve. */
  foreign?: string
}

/** The folder of the data, from ROUTING_DATA; undefined if it is not on this machine. */
export function routingDataFolder(given = process.env.ROUTING_DATA): string | undefined {
  const folder = resolve(given || join(packageRoot(), '../shared/routing'))
  return existsSync(join(folder, 'metatool', 'tools.json')) ? folder : undefined
}

export async function withRoutingData(job: (folder: string) => Promise<object>): Promise<object> {
  const folder = routingDataFolder()
  if (folder !== undefined) return job(folder)
  return { skipped: 'The routing data is not on this machine; set ROUTING_DATA to its folder.' }
}

/** The half of a data set that a request belongs to, independent of the order in the file: 0 for tuning, 1 held out. */
export function halfOf(query: string): 0 | 1 {
  let hash = 2_166_136_261
  for (const character of query) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619)
  return (hash >>> 0) % 2 === 0 ? 0 : 1
}

export async function read<T>(folder: string, ...path: string[]): Promise<T> {
  return JSON.parse(await readFile(join(folder, ...path), 'utf8'))
}

function routable(tool: StoredTool): RoutableTool {
  return { server: tool.server, name: tool.name, description: tool.description, params: tool.params?.join('\n') }
}

async function readUsage(folder: string, name: string, perTool: number): Promise<UsageExample[]> {
  const taken = new Map<string, number>()
  const found: UsageExample[] = []
  for (const { query, gold } of await read<LabelledRequest[]>(folder, name, 'usage.json')) {
    const [id = ''] = gold
    const count = taken.get(id) ?? 0
    if (count >= perTool) continue
    taken.set(id, count + 1)
    const [server = '', tool = ''] = id.split('::')
    found.push({ request: query, server, tool, at: found.length })
  }
  return found
}

export async function readRoutingSet(folder: string, name: string, options: SetOptions = {}): Promise<RoutingSet> {
  const tools = (await read<StoredTool[]>(folder, name, 'tools.json')).map(routable)
  const more = options.distractors ? await read<StoredTool[]>(folder, 'haystack_mcpzero', 'tools.json') : []
  const asked = options.irrelevant ? 'irrelevant.json' : 'queries.json'
  const requests = await read<LabelledRequest[]>(folder, options.foreign ?? name, asked)
  return {
    name,
    tools: [...tools, ...more.map(routable)],
    requests: requests.map(({ query, gold }) => ({ query, gold: options.foreign ? [] : (gold ?? []) })),
    usage: options.examplesPerTool ? await readUsage(folder, name, options.examplesPerTool) : []
  }
}

export function byServer(tools: readonly RoutableTool[]): Map<string, RoutableTool[]> {
  return Map.groupBy(tools, ({ server }) => server)
}
