import { isAppError } from '../lib/errors.ts'
import { certainlyNotRun } from '../tools/connections/call-failure.ts'
import type { CallInput, RawResult } from '../tools/connections/live-server.ts'
import type { GatewayCore } from './gateway-options.ts'

export interface Called {
  server: string
  result: RawResult
  attempts: number
}

/** Makes the call, and makes it to an alternative when it certainly did not run or is safe to repeat; else its failure stands. */
export async function callWithFailover(core: GatewayCore, server: string, input: CallInput): Promise<Called> {
  try {
    return { server, ...(await core.connections.call(server, input)) }
  } catch (error) {
    const isSafe = certainlyNotRun(error) || (!input.careful && SAFE_TO_REPEAT.some((code) => isAppError(error, code)))
    if (!isSafe || input.signal.aborted) throw error
    for (const [at, other] of alternatives(core, server, input.tool).entries()) {
      try {
        const { result, attempts } = await core.connections.call(other, input)
        return { server: other, result, attempts: attempts + at + 1 }
      } catch (failure) {
        if (!certainlyNotRun(failure) && input.careful) throw failure
      }
    }
    throw error
  }
}

const SAFE_TO_REPEAT = ['child_lost', 'child_timeout']

/** Those that have a tool of this name, and where the policy lets it be called. */
function alternatives({ index, policy }: GatewayCore, server: string, tool: string): string[] {
  return (index.entry(server)?.alternatives ?? []).filter((other) => {
    const mayHaveIt = index.tools(other) === undefined || index.tool(other, tool) !== undefined
    return other !== server && index.entry(other) !== undefined && mayHaveIt && policy(other, tool) === 'allow'
  })
}
