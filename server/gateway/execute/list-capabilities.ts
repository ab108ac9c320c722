import type { ServerEntry } from '../../catalog/server-entry.ts'
import type { StoredTool } from '../../catalog/stored-tools.ts'
import type { GatewayServices } from '../gateway-services.ts'

const LINE_CHARS = 120
const MAX_FOUND = 20
/** A model reads the whole list. Beyond these limits it gets numbers, and how to ask for less. */
const MAX_NAMES = 1500
const MAX_SERVERS = 200
const MAX_PENDING = 50
const NARROW = 'Name a "category" to see fewer servers with their tools, or use "find_tool".'

/** Servers and tools as last seen; starts nothing. Lists only names, unless a category narrows it down: fifty servers have many tools. */
export function listCapabilities(core: GatewayServices, category: string | undefined): Record<string, unknown> {
  const problem = core.registryProblem?.()
  return { ...(problem === undefined ? {} : { problem }), ...listed(core, category) }
}

function listed(core: GatewayServices, category: string | undefined): Record<string, unknown> {
  const entries = core.index.entries()
  const chosen = category === undefined ? entries : entries.filter((entry) => fits(entry, category))
  if (category !== undefined && chosen.length === 0) return byTool(core, category)
  const named = chosen.reduce((sum, { name }) => sum + (core.index.tools(name)?.length ?? 0), 0)
  const form = named > MAX_NAMES ? 'numbers' : category === undefined ? 'names' : 'details'
  const servers = chosen.slice(0, MAX_SERVERS).map((entry) => describe(core, entry, form))
  const more = chosen.length - servers.length
  const isCut = more > 0 || form === 'numbers'
  return { servers, ...(more > 0 ? { more } : {}), ...(isCut ? { note: NARROW } : {}), ...unlisted(core) }
}

/** Servers that were never listed. Nothing is started here, so the caller must know what does it. */
function unlisted({ index }: GatewayServices): Record<string, unknown> {
  const unseen = index.unseen()
  const pending = unseen.slice(0, MAX_PENDING)
  if (pending.length === 0) return { pending }
  const more = unseen.length - pending.length
  return {
    pending,
    ...(more > 0 ? { morePending: more } : {}),
    hint: 'The servers under "pending" have not been listed yet. "find_tool" starts them to do so.'
  }
}

/** No server matches the word; perhaps tools do. */
function byTool(core: GatewayServices, category: string): Record<string, unknown> {
  const { matches } = core.router.find(category, { limit: MAX_FOUND, threshold: 0 })
  const found = Map.groupBy(matches, ({ server }) => server)
  const servers = [...found].map(([server, tools]) => ({
    server,
    tools: tools.map(({ tool, description }) => {
      return { tool, description: firstLine(description), ...changedFlag(core, server, tool) }
    })
  }))
  return { servers, ...unlisted(core) }
}

function describe(
  core: GatewayServices,
  entry: ServerEntry,
  form: 'details' | 'names' | 'numbers'
): Record<string, unknown> {
  const { name, description } = entry
  const tools = core.index.tools(name)
  const failure = core.index.record(name)?.lastError
  const changed = tools?.filter((tool) => core.approvals?.definitions.isChanged(name, tool.name)) ?? []
  return {
    server: name,
    ...(description === undefined ? {} : { description }),
    state: core.connections.state(name)?.state ?? 'stopped',
    ...(failure === undefined ? {} : { lastError: failure.message }),
    ...(changed.length === 0 ? {} : { changed: changed.map((tool) => tool.name) }),
    ...(tools === undefined ? { seen: false } : { tools: shown(tools, form) })
  }
}

function shown(tools: StoredTool[], form: 'details' | 'names' | 'numbers'): unknown {
  if (form === 'numbers') return tools.length
  return tools.map((tool) => (form === 'details' ? brief(tool) : tool.name))
}

/** Marks a tool whose definition is not the accepted one. */
export function changedFlag(core: GatewayServices, server: string, tool: string): { changed?: true } {
  return core.approvals?.definitions.isChanged(server, tool) ? { changed: true } : {}
}

function brief({ name, description }: StoredTool): Record<string, unknown> {
  return { tool: name, description: firstLine(description) }
}

function fits({ name, description = '', keywords }: ServerEntry, category: string): boolean {
  const wanted = category.toLowerCase()
  const words = [name, ...keywords].map((word) => word.toLowerCase())
  return words.some((word) => word === wanted || word.includes(wanted)) || description.toLowerCase().includes(wanted)
}

function firstLine(text: string): string {
  return (text.trim().split('\n')[0] ?? '').slice(0, LINE_CHARS)
}
