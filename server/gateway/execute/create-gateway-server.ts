import {
  CLIENT_INFO_META_KEY,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext
} from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import type { TraceMeta } from '../../calls/tracing/tracing.ts'
import { callHash, withPrompter } from '../asking/client-prompter.ts'
import type { CallContext } from '../asking/tool-request.ts'
import { handleTasks, takesTasks, taskCapability } from '../task-handlers.ts'
import type { Gateway } from './gateway.ts'
import { GATEWAY_TOOLS, INSTRUCTIONS } from './tool-definitions.ts'

/** Answers to forms are checked where they are read, and building the SDK's validator costs startup time. */
export const noValidator = {
  getValidator: () => () => ({ valid: false as const, data: undefined, errorMessage: 'Schemas are not checked here.' })
}
const NAMES = new Set(GATEWAY_TOOLS.map(({ name }) => name))
/** Trace context is passed on to the child; everything else in `_meta` is between the client and us. */
const CARRIED = ['traceparent', 'tracestate', 'baggage']

/** The gateway's MCP server for one connection, or for one request over HTTP. It has no state of its own. */
export function createGatewayServer(gateway: Gateway, version: string, caller: Caller, trace: TraceMeta = {}): Server {
  const server = new Server(serverIdentity(version), {
    capabilities: { tools: {}, ...taskCapability(gateway) },
    instructions: INSTRUCTIONS,
    jsonSchemaValidator: noValidator,
    requestState: { verify: async (state, context) => (await gateway.continuations()).verify(state, context) }
  })
  server.setRequestHandler('tools/list', () => ({ tools: gateway.tools }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const { name, arguments: args = {} } = params
    if (!gateway.tools.some((tool) => tool.name === name)) {
      const message = `There is no tool "${name.slice(0, 100)}" here. Run the tools of other servers with "execute".`
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message)
    }
    const named = namedCaller(caller, clientOf(server, context))
    const round = { continuations: () => gateway.continuations(), call: callHash([caller.owner, name, args]) }
    return withPrompter(server, context, round, async (prompter) =>
      withContent(await gateway.call(name, args, { ...callContext(context, named, trace), prompter }))
    )
  })
  handleTasks(server, gateway, (context) => callContext(context, namedCaller(caller, clientOf(server, context)), trace))
  return server
}

/** Adds the name that the client gives itself, if any. */
export function namedCaller(caller: Caller, client: { name: string; version: string } | undefined): Caller {
  return client ? { ...caller, client: clientName(client) } : caller
}

const MAX_CLIENT_CHARS = 100

/** The name that a client gives itself, on one line and cut to a readable length. Nothing proves it. */
export function clientName({ name, version }: { name: string; version: string }): string {
  const claim = `${name}/${version}`.slice(0, 10 * MAX_CLIENT_CHARS).replace(/[\p{Cc}\s]+/gu, ' ')
  return claim.trim().slice(0, MAX_CLIENT_CHARS).toWellFormed()
}

function clientOf(server: Server, { mcpReq }: ServerContext) {
  const { [CLIENT_INFO_META_KEY]: info }: { [key: string]: { name: string; version: string } } = { ...mcpReq.envelope }
  return info ?? server.getClientVersion()
}

export function serverIdentity(version: string) {
  return { name: 'mcp-orchestrator', version }
}

/** Adds the content that every result must have, if a child left it out. */
export function withContent(result: Record<string, unknown>) {
  return { content: [], ...result }
}

export function isGatewayTool(name: string): boolean {
  return NAMES.has(name)
}

export function carriedMeta(meta: Record<string, unknown> = {}): { meta?: Record<string, unknown> } {
  const carried = CARRIED.filter((key) => meta[key] !== undefined)
  return carried.length > 0 ? { meta: Object.fromEntries(carried.map((key) => [key, meta[key]])) } : {}
}

function callContext(request: ServerContext, caller: Caller, trace: TraceMeta): CallContext {
  const { mcpReq } = request
  const { progressToken } = mcpReq._meta ?? {}
  const meta = carriedMeta({ ...trace, ...mcpReq._meta })
  const context: CallContext = { caller, signal: mcpReq.signal, takesTasks: takesTasks(request), ...meta }
  if (progressToken === undefined) return context
  return {
    ...context,
    onProgress: (progress) => {
      const params = { ...progress, progressToken }
      mcpReq.notify({ method: 'notifications/progress', params }).catch(() => {})
    }
  }
}
