import { ProtocolError, ProtocolErrorCode, Server, type ServerContext } from '@modelcontextprotocol/server'
import type { RawResult } from '../../connections/wire/call-input.ts'
import { isRecord } from '../../lib/is-record.ts'
import { errorResult } from '../error-result.ts'
import { namedCaller, noValidator } from '../execute/create-gateway-server.ts'
import { runTool } from '../execute/run-tool.ts'
import { ExposedFace, type FaceOptions } from './exposed-face.ts'
import type { Target } from './exposed-names.ts'
import { findResource, type ListKind, listAll } from './list-all.ts'
import { inOurWords, ofServer, passOn, passOnError, watchOn } from './pass-on.ts'
import type { RequestContext } from './scope.ts'

/** In `_meta`: the tool's definition has changed, and nobody has accepted the change. */
const CHANGED = 'mcp-orchestrator/definitionChanged'

type Answer = RawResult & { content: [] }

/** The exposed servers as one MCP server. Call `exposed.discoverServers` first, so that its capabilities are known. */
export function createExposedServer(options: FaceOptions): Server {
  const { exposed } = options
  const capabilities = exposed.capabilities()
  const instructions = exposed.instructions()
  const server = new Server(
    { name: 'mcp-orchestrator', version: exposed.version },
    { capabilities, jsonSchemaValidator: noValidator, ...(instructions ? { instructions } : {}) }
  )
  const face = new ExposedFace(server, options)
  server.setRequestHandler('tools/list', (_, context) => listTools(face, context))
  server.setRequestHandler('tools/call', ({ params }, context) => callTool(face, params, context))
  if (capabilities.resources) serveResources(server, face)
  if (capabilities.prompts) servePrompts(server, face)
  if (capabilities.completions) {
    server.setRequestHandler('completion/complete', async ({ params }, context) => {
      const { ref } = params
      const isPrompt = ref.type === 'ref/prompt'
      const there = isPrompt
        ? ofServer(exposed, exposed.target(ref.name), ref.name)
        : await resourceOf(face, ref.uri, context)
      const translated = isPrompt ? { ...ref, name: there.name } : { ...ref, uri: there.name }
      return complete(await passOn(face, there.server, context, 'completion/complete', { ...params, ref: translated }))
    })
  }
  if (capabilities.logging && options.era === 'legacy') {
    server.setRequestHandler('logging/setLevel', async ({ params }, context) => {
      const lane = face.ownLane(context)
      await lane.setLevel(exposed.servers(), params.level)
      return {}
    })
  }
  if (options.era === 'modern') return server
  server.setNotificationHandler('notifications/roots/list_changed', async () => {
    const notified = face.lanes
      .all()
      .map((lane) => lane.notifyServers(exposed.servers(), 'notifications/roots/list_changed'))
    await Promise.all(notified)
  })
  return server
}

async function listTools(face: ExposedFace, context: ServerContext) {
  const { exposed } = face
  const lane = face.lane(context)
  const asking = { caller: lane.caller, signal: context.mcpReq.signal }
  await exposed.discoverServers(asking.caller, asking.signal)
  if (exposed.only !== undefined) await exposed.discoverFor(lane, asking.signal)
  const lists = exposed.servers().map(async (server) => {
    const known = exposed.tools(server, lane.capabilities)
    const changed = await exposed.core.approvals?.definitions.changedAmong(server, known)
    return known.map(({ name, hash: _, shown, inputSchema, ...tool }) => ({
      ...tool,
      ...shown,
      ...(changed?.has(name) ? { _meta: { ...metaOf(shown), [CHANGED]: true } } : {}),
      name: exposed.names.of(server, name),
      inputSchema: { ...inputSchema, type: 'object' as const }
    }))
  })
  return { tools: (await Promise.all(lists)).flat() }
}

function metaOf(holder: unknown): Record<string, unknown> {
  return isRecord(holder) && isRecord(holder._meta) ? holder._meta : {}
}

export async function callTool(
  face: ExposedFace,
  { name, arguments: args = {} }: { name: string; arguments?: Record<string, unknown> | undefined },
  context: RequestContext
): Promise<Answer> {
  const { exposed } = face
  const found = await exposed.tool(name, face.lane(context), context.mcpReq.signal).catch((error) => error)
  if (found instanceof Error) return withContent(errorResult(found, exposed, name))
  if (found === undefined) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 100)}`)
  }
  const { server, tool } = found
  const toolRequest = { server, tool, args, latest: exposed.finderOf(tool.name, face.lane(context)) }
  try {
    const result = await face.serve(server, context, [tool.name, args], async (called) => {
      const { result: answer, definitionChanged } = await runTool(exposed.core, toolRequest, called)
      return definitionChanged ? { ...answer, _meta: { ...metaOf(answer), [CHANGED]: true } } : answer
    })
    for (const uri of linksIn(result)) exposed.resources.mention(server, uri)
    return withContent(result)
  } catch (error) {
    const serverError = passOnError(server, error)
    if (serverError) throw serverError
    return withContent(errorResult(error, exposed, name))
  }
}

function serveResources(server: Server, face: ExposedFace): void {
  const { exposed } = face
  const list = (kind: ListKind) => (request: { params?: object | undefined }, context: ServerContext) =>
    listAll(face, context, kind, { ...request.params })
  server.setRequestHandler('resources/list', async (request, context) => ({
    resources: [],
    ...(await list('resources')(request, context))
  }))
  server.setRequestHandler('resources/templates/list', async (request, context) => ({
    resourceTemplates: [],
    ...(await list('resourceTemplates')(request, context))
  }))
  server.setRequestHandler('resources/read', async ({ params }, context) => {
    const target = await resourceOf(face, params.uri, context)
    const result = await passOn(face, target.server, context, 'resources/read', { ...params, uri: target.name })
    return { contents: [], ...renamed(result, target.name, params.uri) }
  })
  if (!exposed.capabilities().resources?.subscribe) return
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }, context) => {
    const target = await resourceOf(face, uri, context)
    const lane = face.ownLane(context)
    const caller = namedCaller(lane.caller, server.getClientVersion())
    await watchOn(exposed, lane, target, context.mcpReq.signal, caller).catch((error) => {
      throw passOnError(target.server, error) ?? inOurWords(error, exposed.logger)
    })
    return {}
  })
  server.setRequestHandler('resources/unsubscribe', async ({ params: { uri } }, context) => {
    const { server: owner, name } = await resourceOf(face, uri, context)
    await face.lane(context).unwatch(owner, name)
    return {}
  })
}

async function resourceOf(face: ExposedFace, uri: string, context: ServerContext): Promise<Target> {
  const found = await findResource(face.exposed, uri, face.lane(context).caller, context.mcpReq.signal)
  if (found !== undefined) return found
  throw new ProtocolError(ProtocolErrorCode.ResourceNotFound, `Resource not found: ${uri.slice(0, 500)}`)
}

function servePrompts(server: Server, face: ExposedFace): void {
  const { exposed } = face
  server.setRequestHandler('prompts/list', async (request, context) => ({
    prompts: [],
    ...(await listAll(face, context, 'prompts', { ...request.params }))
  }))
  server.setRequestHandler('prompts/get', async ({ params }, context) => {
    const { server: owner, name } = ofServer(exposed, exposed.target(params.name), params.name)
    return { messages: [], ...(await passOn(face, owner, context, 'prompts/get', { ...params, name })) }
  })
}

/** Adds what the SDK requires in every result of this kind; a question in its place has none of it. */
function withContent(result: RawResult): Answer {
  return { content: [], ...result }
}

function complete(result: RawResult) {
  return { completion: { values: [] }, ...result }
}

/** The resources that a result links to or contains. */
function linksIn({ content }: RawResult): string[] {
  const items: unknown[] = Array.isArray(content) ? content : []
  return items.flatMap((item) => {
    const holder = isRecord(item) && item.type === 'resource' ? item.resource : item
    return isRecord(holder) && typeof holder.uri === 'string' ? [holder.uri] : []
  })
}

/** Restores the URI that the client used, if the resource is shown under another one. */
function renamed(result: RawResult, from: string, to: string): RawResult {
  if (from === to || !Array.isArray(result.contents)) return result
  return { ...result, contents: result.contents.map((item) => (item?.uri === from ? { ...item, uri: to } : item)) }
}
