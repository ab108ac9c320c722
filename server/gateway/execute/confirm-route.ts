/**
 * What stands between a tool that was found for a sentence and its run. Invariant: where nobody has named the tool, only one that
 * reads is run, and only for a sentence that plainly asks for it; anything else is confirmed first.
 */
import type { StoredTool } from '../../catalog/stored-tools.ts'
import { isReader } from '../../policy/tool-effects.ts'
import { showAsData } from '../asking/show-as-data.ts'
import type { CallContext } from '../asking/tool-request.ts'
import type { GatewayServices } from '../gateway-services.ts'
import type { SettledParams } from '../params/resolve-params.ts'
import { unusedValues } from '../params/unused-values.ts'
import { doubtAbout, doubtAboutReading } from './doubtful-sentence.ts'

/** What a person can still read in a client's dialog. */
const MAX_SHOWN = 10_000
/** Below this, no value of the sentence goes to a server that nobody has named. */
const SURE_ENOUGH = 0.6

export interface FoundTool extends SettledParams {
  server: string
  tool: StoredTool
  confidence: number
  request: string
  /** The caller named the server, though not the tool. */
  isServerNamed: boolean
}

export function reads({ index }: GatewayServices, server: string, tool: StoredTool): boolean {
  return isReader(index.entry(server), index.tools(server) ?? [], tool)
}

/** Why the tool must not run for this sentence alone, all of it; undefined: it may. */
export function whyConfirm(core: GatewayServices, found: FoundTool): string | undefined {
  const { server, tool, request } = found
  const isRead = reads(core, server, tool)
  const reasons = [
    isRead ? doubtAboutReading(request, tool) : doubtAbout(request),
    isRead ? undefined : 'This tool is not known to only read.',
    unusedValues(found),
    unsure(found)
  ].filter((reason) => reason !== undefined)
  return reasons.length > 0 ? reasons.join(' ') : undefined
}

function unsure({ confidence, filledBy, isServerNamed }: FoundTool): string | undefined {
  if (confidence >= SURE_ENOUGH || !filledBy || isServerNamed) return undefined
  return `The confidence of ${confidence} is too low to send values of the request to this server.`
}

/** Whether the client's human can be shown the whole call. */
export function canConfirm({ voice }: CallContext, params: Record<string, unknown>): boolean {
  return voice?.choose !== undefined && showAsData(params).length <= MAX_SHOWN
}
