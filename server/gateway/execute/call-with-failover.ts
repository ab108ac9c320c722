import type { CallInput, RawResult } from '../../connections/live-server.ts'
import { mayRepeat } from '../../connections/wire/call-failure.ts'
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
  /** Only a tool that reads may be called: nobody has named or approved this one. */
  mustRead?: boolean
  /** A human approved this call at this server, and none elsewhere. */
  here?: boolean
}

/**
 * Makes the call, and makes it to an alternative when it certainly did not run or is safe to repeat; else its failure stands.
 * Invariant: in place of a tool that reads, none is called that may write.
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
  const asked = core.index.tool(server, input.tool)
  try {
    return { server, ...(await core.connections.call(server, mustRead ? { ...input, ...reads(server) } : input)) }
  } catch (error) {
    if (here || !mayRepeat(error, input.mustNotRepeat)) throw error
    const isRead = mustRead || (asked && isReader(core.index.entry(server), core.index.tools(server) ?? [], asked))
    for (const [at, other] of alternatives(core, server, input.tool).entries()) {
      if (input.signal.aborted) break
      if (await isChanged(core, other, input)) continue
      // A tool of the same name may do more there than it does here.
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

/** Those that have a tool of this name, and where the policy lets it be called. */
function alternatives({ index, policy }: CallCore, server: string, tool: string): string[] {
  return (index.entry(server)?.alternatives ?? []).filter((other) => {
    const mayHaveIt = index.tools(other) === undefined || index.tool(other, tool) !== undefined
    return other !== server && index.entry(other) !== undefined && mayHaveIt && policy(other, tool) === 'allow'
  })
}

/** One that would have to be asked for is no alternative: nobody has been asked about it. Only the running server knows. */
async function isChanged({ approvals, connections }: CallCore, server: string, input: CallInput): Promise<boolean> {
  if (!approvals?.asksAboutChange(server, input.tool)) return false
  // One that can't be listed can't be called either.
  const tools = await connections.list(server, input).catch(() => [])
  const live = tools.find(({ name }) => name === input.tool)
  return live === undefined || (await approvals.definitions.change(server, live)) !== undefined
}
