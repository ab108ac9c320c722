import { mayRepeat } from '../../connections/wire/call-failure.ts'
import type { CallInput, RawResult } from '../../connections/wire/call-input.ts'
import { isAppError } from '../../lib/errors.ts'
import { isAcceptedReader, isReader, mustNotBeRepeated } from '../../policy/tool-effects.ts'
import type { GatewayServices } from '../gateway-services.ts'

type CallCore = Pick<GatewayServices, 'connections' | 'index' | 'policy' | 'approvals'>

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
}

/**
 * Makes the call. If it certainly did not run or is safe to repeat, tries an alternative server; otherwise the failure stands.
 * Invariant: a tool that reads is never replaced by one that may write.
 */
export async function callWithFailover(
  core: CallCore,
  server: string,
  input: CallInput,
  { mustRead = false, here = false }: FailoverRules = {}
): Promise<Called> {
  const reads = (at: string): Pick<CallInput, 'mayRun'> => ({
    mayRun: (tool, tools) => isAcceptedReader(core.approvals?.definitions, at, core.index.entry(at), tools, tool)
  })
  const original = core.index.tool(server, input.tool)
  try {
    return { server, ...(await core.connections.call(server, mustRead ? { ...input, ...reads(server) } : input)) }
  } catch (error) {
    if (here || !mayRepeat(error, input.mustNotRepeat)) throw error
    const isRead =
      mustRead || (original && isReader(core.index.entry(server), core.index.tools(server) ?? [], original))
    for (const [at, other] of alternatives(core, server, input.tool).entries()) {
      if (input.signal.aborted) break
      if (await isChanged(core, other, input)) continue
      // A tool of the same name may do more on the other server.
      const known = core.index.tool(other, input.tool)
      const isRepeatable = known !== undefined && !mustNotBeRepeated(known)
      const mustNotRepeat =
        input.mustNotRepeat || !isRepeatable || core.approvals?.definitions.isChanged(other, input.tool) === true
      try {
        const { result, attempts } = await core.connections.call(other, {
          ...input,
          ...(isRead ? reads(other) : {}),
          mustNotRepeat
        })
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

/** A tool that would need approval is not an alternative, because nobody was asked about it. Only the running server knows. */
async function isChanged({ approvals, connections }: CallCore, server: string, input: CallInput): Promise<boolean> {
  if (!approvals?.asksAboutChange(server, input.tool)) return false
  // A server that can't be listed can't be called either.
  const tools = await connections.list(server, input).catch(() => [])
  const live = tools.find(({ name }) => name === input.tool)
  return live === undefined || (await approvals.definitions.change(server, live)) !== undefined
}
