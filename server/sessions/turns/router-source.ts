import { ROUTER } from '../../../contract/own-sources.ts'
import type { Caller } from '../../calls/caller.ts'
import type { ToolDefinitionInput } from '../../calls/offered-tool.ts'
import { FIND_TOOL, ROUTER_TOOLS } from '../../calls/router-tools.ts'
import type { ToolSource } from '../../calls/tool-source.ts'
import { AppError } from '../../lib/errors.ts'
import type { RouteResult } from '../../routing/port.ts'

/** Finds tools of the registry's servers for a request in plain words. */
export type FindTools = (
  request: string,
  options: { limit: number; owner: string; signal: AbortSignal }
) => Promise<RouteResult>

interface KnownTool {
  server: string
  definition: ToolDefinitionInput
}

export interface RouterSourceOptions {
  find: FindTools
  /** The tools that this caller can be offered and that no rule denies. */
  known(caller: Caller, signal: AbortSignal): Promise<KnownTool[]>
}

const DEFAULT_LIMIT = 5
const MAX_LIMIT = 20
const MAX_QUERY = 4000
const MAX_DESCRIPTION = 600
/** Limit for all schemas of one answer together. The model gets at most 60,000 characters of it. */
const MAX_SCHEMAS = 40_000
const TOO_LONG = 'left out because it is too long: find this tool alone, by its name and with limit 1'

/** `find_tool` as a source of the chat. `execute` never gets here: it is replaced by the call that it names. */
export function routerSource({ find, known }: RouterSourceOptions): ToolSource {
  return {
    server: ROUTER,
    list: async () => ROUTER_TOOLS,
    async call({ caller, name, args, signal }) {
      if (name !== FIND_TOOL) throw new AppError('invalid', 'invalid_request', `${name} can't be called by itself.`)
      const { query, limit } = readQuery(args)
      const [{ matches, abstained }, tools] = await Promise.all([
        find(query, { limit: limit * 2, owner: caller.owner, signal }),
        known(caller, signal)
      ])
      const byKey = new Map(tools.map(({ server, definition }) => [keyOf(server, definition.name), definition]))
      let room = MAX_SCHEMAS
      const found = matches.flatMap(({ server, tool, confidence }) => {
        const definition = byKey.get(keyOf(server, tool))
        return definition ? [{ server, tool, confidence: Math.round(confidence * 1000) / 1000, definition }] : []
      })
      const shown = found.slice(0, limit).map(({ definition: { description = '', inputSchema }, ...match }, at) => {
        const size = JSON.stringify(inputSchema).length
        const fits = size <= room || at === 0
        if (fits) room -= size
        const text = description.slice(0, MAX_DESCRIPTION).toWellFormed()
        return { ...match, description: text, inputSchema: fits ? inputSchema : TOO_LONG }
      })
      const answer = { matches: shown, abstained: abstained || shown.length === 0 }
      return { content: [{ type: 'text', text: JSON.stringify(answer) }] }
    }
  }
}

function readQuery({ query, limit }: Record<string, unknown>): { query: string; limit: number } {
  if (typeof query !== 'string' || query.trim() === '')
    throw new AppError('invalid', 'invalid_request', '"query" is missing. Say what you are looking for.')
  const wished = typeof limit === 'number' && limit >= 1 ? Math.floor(limit) : DEFAULT_LIMIT
  return { query: query.slice(0, MAX_QUERY), limit: Math.min(wished, MAX_LIMIT) }
}

function keyOf(server: string, tool: string): string {
  return JSON.stringify([server, tool])
}
