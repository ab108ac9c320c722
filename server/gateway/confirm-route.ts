/**
 * What stands between a tool that was found for a sentence and its run. Invariant: where nobody has named the tool, only one that
 * reads is run, and only for a sentence that plainly asks for it; anything else is confirmed first.
 */
import type { StoredTool } from '../catalog/stored-tools.ts'
import { isReader } from '../tools/tool-effects.ts'
import { showAsData } from './asking/show-as-data.ts'
import { doubtAboutReading } from './doubtful-sentence.ts'
import type { GatewayCore } from './gateway-options.ts'
import type { CallContext } from './run-tool.ts'

/** What a person can still read in a client's dialog. */
const MAX_SHOWN = 10_000

export function reads({ index }: GatewayCore, server: string, tool: StoredTool): boolean {
  return isReader(index.entry(server), index.tools(server) ?? [], tool)
}

/** Why the tool must not run for this sentence alone; undefined: it may. */
export function whyConfirm(core: GatewayCore, server: string, tool: StoredTool, request: string): string | undefined {
  return reads(core, server, tool) ? doubtAboutReading(request, tool) : 'This tool is not known to only read.'
}

/** Whether the client's human can be shown the whole call. */
export function canConfirm({ voice }: CallContext, params: Record<string, unknown>): boolean {
  return voice?.choose !== undefined && showAsData(params).length <= MAX_SHOWN
}
