/** Finds the tools and servers that a request names, and how certain each is. */
import { put, take } from '../words/set-map.ts'
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

export function createNameIndex() {
  const tools = new Map<string, Set<number>>()
  const servers = new Map<string, Set<string>>()

  function sort(mention: Mention, named: Named): void {
    const sure = mention.introduced || (mention.spelt && !mention.common)
    const ofTools = tools.get(mention.key) ?? []
    const ofServers = servers.get(mention.key) ?? []
    if (mention.common && !sure) return
    for (const slot of ofTools) (sure ? named.tools : named.maybeTools).add(slot)
    for (const server of ofServers) (sure || mention.placed ? named.servers : named.maybeServers).add(server)
  }

  return {
    addServer: (server: string) => put(servers, nameKey(server), server),
    removeServer: (server: string) => take(servers, nameKey(server), server),
    addTool: (name: string, slot: number) => put(tools, nameKey(name), slot),
    removeTool: (name: string, slot: number) => take(tools, nameKey(name), slot),
    /** Whether a text as a whole is the name of a tool or a server. */
    has: (text: string) => tools.has(nameKey(text)) || servers.has(nameKey(text)),
    named(request: string): Named {
      const named: Named = { tools: new Set(), servers: new Set(), maybeTools: new Set(), maybeServers: new Set() }
      for (const mention of findMentions(request, (key) => tools.has(key) || servers.has(key))) sort(mention, named)
      return named
    }
  }
}
