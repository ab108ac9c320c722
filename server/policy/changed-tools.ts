import type { StoredTool } from '../catalog/stored-tools.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { DefinitionChange, DefinitionGuard } from './definition-guard.ts'

/** Which of the catalogue's tools are not the ones that were accepted: the guard's verdicts, at hand for every answer and call. */
export class ChangedTools {
  readonly #guard: DefinitionGuard
  readonly #logger: Logger
  /** By server, then by tool. */
  readonly #changed = new Map<string, Map<string, StoredTool>>()

  constructor(guard: DefinitionGuard, logger: Logger) {
    this.#guard = guard
    this.#logger = logger
  }

  /** To be told of a server's tools as they are seen. */
  readonly look = (server: string, tools: StoredTool[]): void => {
    this.#lookAtAll(server, tools).catch((error) => {
      this.#logger.warn({ server }, `Its definitions could not be compared: ${messageOf(error)}`)
    })
  }

  /** As last looked at. */
  isChanged(server: string, tool: string): boolean {
    return this.#changed.get(server)?.has(tool) === true
  }

  /** Somebody may have accepted some of them elsewhere; costs nothing where there is none. */
  async refresh(): Promise<void> {
    for (const [server, tools] of [...this.#changed]) await this.#check(server, [...tools.values()])
  }

  async change(server: string, tool: StoredTool): Promise<DefinitionChange | undefined> {
    return (await this.#check(server, [tool])).get(tool.name)
  }

  async accept(server: string, tool: string, text: string): Promise<void> {
    await this.#guard.accept(server, tool, text)
    this.#changed.get(server)?.delete(tool)
  }

  /** A server that lists ever new names shall fill no memory either. */
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
