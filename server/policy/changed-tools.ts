import type { StoredTool } from '../catalog/stored-tools.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { DefinitionChange, DefinitionGuard } from './definition-guard.ts'

/** Tracks the tools in the tool index whose definition is not the accepted one. */
export class ChangedTools {
  readonly #guard: DefinitionGuard
  readonly #logger: Logger
  /** By server, then by tool. */
  readonly #changed = new Map<string, Map<string, StoredTool>>()

  constructor(guard: DefinitionGuard, logger: Logger) {
    this.#guard = guard
    this.#logger = logger
  }

  /** Call this with a server's tools whenever they are listed. */
  readonly look = (server: string, tools: StoredTool[]): void => {
    this.#lookAtAll(server, tools).catch((error) => {
      this.#logger.warn({ server }, `Could not compare its tool definitions: ${messageOf(error)}`)
    })
  }

  /** The result of the last check. */
  isChanged(server: string, tool: string): boolean {
    return this.#changed.get(server)?.has(tool) === true
  }

  /** Checks the changed tools again, because another process may have accepted some. Does nothing if there are none. */
  async refresh(): Promise<void> {
    for (const [server, tools] of [...this.#changed]) await this.#check(server, [...tools.values()])
  }

  /** The names of the changed ones among these tools, checked now. */
  async changedAmong(server: string, tools: StoredTool[]): Promise<Set<string>> {
    return new Set((await this.#check(server, tools)).keys())
  }

  async change(server: string, tool: StoredTool): Promise<DefinitionChange | undefined> {
    return (await this.#check(server, [tool])).get(tool.name)
  }

  /** The tools as they were accepted. A tool without an accepted definition counts as destructive. */
  async accepted(server: string, tools: StoredTool[]): Promise<StoredTool[]> {
    const changes = await this.#check(server, tools)
    return tools.map((tool) => {
      const change = changes.get(tool.name)
      return change === undefined ? tool : { ...tool, ...acceptedDefinition(change.before) }
    })
  }

  async accept(server: string, tool: string, text: string): Promise<void> {
    await this.#guard.accept(server, tool, text)
    this.#changed.get(server)?.delete(tool)
  }

  /** Forgets tools that the server no longer lists, so that ever-changing names can't fill the memory. */
  async #lookAtAll(server: string, tools: StoredTool[]): Promise<void> {
    await this.#check(server, tools)
    const names = new Set(tools.map(({ name }) => name))
    const known = this.#changed.get(server)
    for (const name of known?.keys() ?? []) if (!names.has(name)) known?.delete(name)
  }

  async #check(server: string, tools: StoredTool[]): Promise<Map<string, DefinitionChange>> {
    const changes = await this.#guard.changes(
      tools.map((tool) => ({ server, name: tool.name, modelName: tool.name, whole: tool }))
    )
    const known = this.#changed.get(server) ?? new Map<string, StoredTool>()
    this.#changed.set(server, known)
    for (const tool of tools) {
      if (changes.has(tool.name)) known.set(tool.name, tool)
      else known.delete(tool.name)
    }
    return changes
  }
}

const NOT_ACCEPTED = { annotations: { destructiveHint: true } }

function acceptedDefinition(text: string): Partial<StoredTool> {
  try {
    const { description, inputSchema, annotations } = JSON.parse(text)
    return { description, inputSchema, annotations }
  } catch {
    return NOT_ACCEPTED
  }
}
