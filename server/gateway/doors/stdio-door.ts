import type { Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { type Caller, LOCAL_OWNER } from '../../calls/caller.ts'
import type { Logger } from '../../lib/logger.ts'
import { pushPrompter } from '../asking/client-prompter.ts'
import { createGatewayServer, isGatewayTool, namedCaller } from '../execute/create-gateway-server.ts'
import type { Gateway } from '../execute/gateway.ts'
import type { ExposedStdio } from '../expose/exposed-stdio.ts'
import { answerFastCall } from './fast-path.ts'
import { openStdin } from './stdio-input.ts'
import { StdioTransport } from './stdio-transport.ts'

export interface StdioDoor {
  /** Resolves when the client is gone. */
  readonly closed: Promise<void>
  close(): Promise<void>
}

/**
 * Serves the gateway on this process's stdin and stdout, in the revision that the client begins with. With `exposed` it serves
 * the servers' own tools in place of the four.
 */
export function openStdioDoor(gateway: Gateway, version: string, logger: Logger, exposed?: ExposedStdio): StdioDoor {
  const caller: Caller = { owner: LOCAL_OWNER, door: 'stdio' }
  let connection: Server | undefined
  const transport = new StdioTransport({
    input: openStdin,
    output: process.stdout,
    fastPath: {
      knows: ({ name }) => (exposed ? exposed.fastCalls(name) !== undefined : isGatewayTool(name)),
      call: async (call, context) => {
        const client = exposed?.fastCalls(call.name)
        if (client) return client.call(call, context)
        // A call on the fast path of the newer revision comes from a client that can't be asked.
        const prompter = connection && !call.modern ? pushPrompter(connection) : undefined
        const named = namedCaller(caller, call.client ?? connection?.getClientVersion())
        return answerFastCall(gateway, version, call, { caller: named, ...context, prompter })
      }
    }
  })
  const open = () => {
    connection = createGatewayServer(gateway, version, caller)
    return connection
  }
  const handle = serveStdio(exposed ? exposed.createServer : open, {
    transport,
    onerror: (error) => logger.debug({ err: error }, 'client connection')
  })
  exposed?.tap(transport)
  return {
    closed: transport.closed,
    async close() {
      await handle.close()
      exposed?.close()
    }
  }
}
