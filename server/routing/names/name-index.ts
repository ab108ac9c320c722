/** Finds the tools and servers that a request names, and how certain each is. */
import { findMentions, type Mention, nameKey } from './find-mentions.ts'

export interface Named {
  /** Slots of tools that are certainly named: they win. */
  tools: Set<number>
  /** Servers that are certainly named: only their tools count. */
  servers: Set<string>
  /** Words that may or may not be meant as a name. */
  maybeTools: Set<number>
  maybeServers: Set<string>
}

export interface NameIndex {
  addServer(server: string): void
  removeServer(server: string): void
  addTool(name: string, slot: number): void
  removeTool(name: string, slot: number): void
  named(request: string): Named
}

function put<T>(map: Map<string, Set<T>>, key: string, value: T): void {
  if (key === '') return
  const known = map.get(key)
  if (known) known.add(value)
  else map.set(key, new Set([value]))
}

function take<T>(map: Map<string, Set<T>>, key: string, value: T): void {
  const known = map.get(key)
  known?.delete(value)
  if (known?.size === 0) map.delete(key)
}

function merge<T>(into: Set<T>, more: Iterable<T>): void {
  for (const value of more) into.add(value)
}

export function createNameIndex(): NameIndex {
  const tools = new Map<string, Set<number>>()
  const servers = new Map<string, Set<string>>()

  function sort(mention: Mention, named: Named): void {
    const sure = mention.introduced || (mention.spelt && !mention.common)
    const ofTools = tools.get(mention.key) ?? []
    const ofServers = servers.get(mention.key) ?? []
    merge(sure ? named.tools : named.maybeTools, mention.common && !sure ? [] : ofTools)
    merge(sure || mention.placed ? named.servers : named.maybeServers, mention.common && !sure ? [] : ofServers)
  }

  return {
    addServer: (server) => put(servers, nameKey(server), server),
    removeServer: (server) => take(servers, nameKey(server), server),
    addTool: (name, slot) => put(tools, nameKey(name), slot),
    removeTool: (name, slot) => take(tools, nameKey(name), slot),
    named(request) {
      const named: Named = { tools: new Set(), servers: new Set(), maybeTools: new Set(), maybeServers: new Set() }
      for (const mention of findMentions(request, (key) => tools.has(key) || servers.has(key))) sort(mention, named)
      return named
    }
  }
}
