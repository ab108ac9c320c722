import type { ServerEntry } from '../../catalog/server-entry.ts'
import { showName } from '../../gateway/asking/show-as-data.ts'
import type { GatewayServices } from '../../gateway/gateway-services.ts'

export interface ChangedTool {
  server: string
  tool: string
  before: string
  after: string
}

/** Tools in the tool index whose definition differs from the accepted one. Starts no server. */
export async function changedTools(
  entries: ServerEntry[],
  { index, approvals }: Pick<GatewayServices, 'index' | 'approvals'>
): Promise<ChangedTool[]> {
  const rows: ChangedTool[] = []
  for (const { name: server } of entries) {
    for (const tool of index.tools(server) ?? []) {
      const change = await approvals?.definitions.change(server, tool)
      if (change) rows.push({ server, tool: tool.name, ...change })
    }
  }
  return rows
}

/** Warnings about a server's tools; properties without warnings are missing. */
export interface ToolNotes {
  changed?: string[]
  leftOut?: string[]
  /** Number of tools that can be found by meaning so far, if some can't yet. */
  embedded?: { done: number; of: number }
}

export async function toolNotes(
  entry: ServerEntry,
  core: Pick<GatewayServices, 'index' | 'approvals' | 'enrichment'>
): Promise<ToolNotes> {
  const changed = (await changedTools([entry], core)).map(({ tool }) => tool)
  const { leftOut = [] } = core.index.record(entry.name) ?? {}
  const of = core.index.tools(entry.name)?.length ?? 0
  const done = core.enrichment?.embedded(entry.name) ?? of
  return {
    ...(changed.length > 0 ? { changed } : {}),
    ...(leftOut.length > 0 ? { leftOut } : {}),
    ...(done < of ? { embedded: { done, of } } : {})
  }
}

const MAX_NAMED = 10

export function describeNotes(server: string, { changed = [], leftOut = [], embedded }: ToolNotes): string[] {
  const named = changed.slice(0, MAX_NAMED).map(showName).join(', ')
  const more = changed.length > MAX_NAMED ? ` and ${changed.length - MAX_NAMED} more` : ''
  const what = changed.length === 1 ? 'tool has' : 'tools have'
  const accept = `mcp-orchestrator servers accept ${/^[\w.-]+$/.test(server) ? server : JSON.stringify(server)}`
  return [
    ...(changed.length > 0
      ? [
          `      ! ${changed.length} ${what} changed since they were accepted: ${named}${more}. Their calls may need approval until you review and accept them: ${accept}`
        ]
      : []),
    ...leftOut.map((reason) => `      ! left out: the tool ${reason}.`),
    ...(embedded
      ? [
          `      ${embedded.done} of ${embedded.of} tools can be found by meaning so far; a running gateway does the rest`
        ]
      : [])
  ]
}
