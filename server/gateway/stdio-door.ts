import { serveStdio } from '@modelcontextprotocol/server/stdio'
import type { Logger } from '../lib/logger.ts'
import { type Caller, LOCAL_OWNER } from '../tools/caller.ts'
import { carriedMeta, createGatewayServer, isGatewayTool } from './create-gateway-server.ts'
import type { Gateway } from './gateway.ts'
import { openStdin } from './stdio-input.ts'
import { StdioTransport } from './stdio-transport.ts'

export interface StdioDoor {
  /** Resolves when the client has gone. */
  readonly closed: Promise<void>
  close(): Promise<void>
}

/** Serves the gateway on this process's stdin and stdout, in the revision that the client opens with. */
export function openStdioDoor(gateway: Gateway, version: string, logger: Logger): StdioDoor {
  const caller: Caller = { owner: LOCAL_OWNER, door: 'stdio' }
  const transport = new StdioTransport({
    input: openStdin,
    output: process.stdout,
    shortWay: {
      knows: isGatewayTool,
      call: (name, args, { meta, ...context }) => gateway.call(name, args, { caller, ...context, ...carriedMeta(meta) })
    }
  })
  const handle = serveStdio(() => createGatewayServer(gateway, version, caller), {
    transport,
    onerror: (error) => logger.debug({ err: error }, 'client connection')
  })
  return { closed: transport.closed, close: () => handle.close() }
}
