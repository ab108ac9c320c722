import type { StoredTool } from '../../catalog/stored-tools.ts'
import { mayRepeat } from '../../connections/wire/call-failure.ts'
import type { CallInput, RawResult } from '../../connections/wire/call-input.ts'
import { isAppError } from '../../lib/errors.ts'
import { isAcceptedReader, isReader, mustNotBeRepeated } from '../../policy/tool-effects.ts'
import type { Approvals } from '../asking/approve-call.ts'
import type { GatewayServices } from '../gateway-services.ts'

interface CallCore extends Pick<GatewayServices, 'connections' | 'index' | 'policy'> {
  approvals?: Pick<Approvals, 'definitions'> | undefined
}

export interface Called {
  server: string
  result: RawResult
  attempts: number
}

export interface FailoverRules {
  /** The tool must only read: nobody has named or approved it. */
  mustRead?: boolean
  /** The call was approved for this server only. */
  here?: boolean
  /** If given: an alternative that it does not allow may only read. */
  isRuled?: ((server: string) => boolean) | undefined
}

/**
 * Makes the call. If it certainly did not run or is safe to repeat, tries an alternative server; otherwise the failure stands.
 * Invariants: a tool that reads is never replaced by one that may write, and none by one whose definition has changed.
 */
export async function callWithFailover(
  core: CallCore,
  server: string,
  input: CallInput,
  { mustRead = false, here = false, isRuled = () => true }: FailoverRules = {}
): Promise<Called> {
  const definitions = core.approvals?.definitions
  const isRead = (at: string, tool: StoredTool, tools: StoredTool[]) =>
    isAcceptedReader(definitions, at, core.index.entry(at), tools, tool)
  const original = core.index.tool(server, input.tool)
  try {
    const check: Pick<CallInput, 'mayRun'> = mustRead ? { mayRun: (tool, tools) => isRead(server, tool, tools) } : {}
    return { server, ...(await core.connections.call(server, { ...input, ...check })) }
  } catch (error) {
    if (here || !mayRepeat(error, input.mustNotRepeat)) throw error
    const mustStayReader =
      mustRead || (original && isReader(core.index.entry(server), core.index.tools(server) ?? [], original))
    for (const [at, other] of alternatives(core, server, input.tool).entries()) {
      if (input.signal.aborted) break
      // A tool of the same name may do more on the other server.
      const known = core.index.tool(other, input.tool)
      const isRepeatable = known !== undefined && !mustNotBeRepeated(known)
      const mustNotRepeat = input.mustNotRepeat || !isRepeatable
      // Nobody named this server, so its tool must be as it was accepted, even where a changed one may be called by name.
      const mayRun = async (tool: StoredTool, tools: StoredTool[]) =>
        (await definitions?.change(other, tool)) === undefined &&
        ((!mustStayReader && isRuled(other)) || (await isRead(other, tool, tools)))
      try {
        const { result, attempts } = await core.connections.call(other, { ...input, mayRun, mustNotRepeat })
        return { server: other, result, attempts: attempts + at + 1 }
      } catch (failure) {
        if (!mayRepeat(failure, mustNotRepeat) && !isAppError(failure, 'definition_changed')) throw failure
      }
    }
    throw error
  }
}

/** Servers with a tool of this name that the policy allows. */
function alternatives({ index, policy }: CallCore, server: string, tool: string): string[] {
  return (index.entry(server)?.alternatives ?? []).filter((other) => {
    const mayHaveIt = index.tools(other) === undefined || index.tool(other, tool) !== undefined
    return other !== server && index.entry(other) !== undefined && mayHaveIt && policy(other, tool) === 'allow'
  })
}
