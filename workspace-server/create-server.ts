/**
 * The MCP server: lists and runs the tools, and answers the owner's `workspace/…` requests. It has no state, because the SDK may
 * create two of them for one connection while it finds out which protocol version the client speaks.
 */
import { ProtocolError, ProtocolErrorCode, Server, type ServerContext } from '@modelcontextprotocol/server'
import type { WorkspaceCheckpoint } from './checkpoint/workspace-checkpoint.ts'
import { pathTarget, TargetChangedError } from './files/path-target.ts'
import type { WorkspaceRoot } from './files/workspace-root.ts'
import { readLimits } from './limits.ts'
import { log } from './log.ts'
import type { EpochFence } from './process/epoch-fence.ts'
import { tidy } from './process/tidy.ts'
import { TARGET_META, type TargetChanged, WORKSPACE_METHODS } from './protocol.ts'
import { reach } from './reach.ts'
import { changeFiles } from './tools/change-files.ts'
import { type Tool, type ToolContext, ToolError } from './tools/tool.ts'
import {
  changeParams,
  changesParams,
  claimParams,
  expectedTarget,
  fetchParams,
  reachParams,
  resolveParams,
  restoreParams
} from './workspace-params.ts'

export interface Workspace {
  root: WorkspaceRoot
  fence: EpochFence
  files: WorkspaceCheckpoint
  tools: Tool[]
  /** Ends all other processes in the container. Returns false if some are left. */
  endOthers(): Promise<boolean>
}

const VERSION = '1.0.0'

/** Building the SDK's own validator slows the start down, and nothing here asks a client to fill in a form. */
const noSchemaValidator = {
  getValidator: () => () => ({ valid: false as const, data: undefined, errorMessage: 'Schemas are not checked here.' })
}

export function createServer(workspace: Workspace): Server {
  const server = new Server(
    { name: 'workspace', version: VERSION },
    { capabilities: { tools: {} }, jsonSchemaValidator: noSchemaValidator }
  )
  const tools = new Map(workspace.tools.map((tool) => [tool.name, tool]))
  const listed = workspace.tools.map(({ run: _, ...description }) => description)
  server.setRequestHandler('tools/list', () => ({ tools: listed }))
  server.setRequestHandler('tools/call', ({ params }, context) => {
    const tool = tools.get(params.name)
    if (tool === undefined) throw invalid(`There is no tool "${params.name.slice(0, 100)}".`)
    const expected = readParams(expectedTarget, context.mcpReq._meta?.[TARGET_META])
    workspace.files.beforeTool()
    return callTool(tool, params.arguments ?? {}, { ...toolContext(context), expected })
  })
  addWorkspaceMethods(server, workspace)
  return server
}

async function callTool(tool: Tool, args: Record<string, unknown>, context: ToolContext) {
  try {
    return { ...(await tool.run(args, context)) }
  } catch (error) {
    if (error instanceof TargetChangedError) throw targetChanged(error)
    if (!(error instanceof ToolError)) log(`${tool.name} failed`, error)
    const text = error instanceof ToolError ? error.message : 'The tool failed because of an internal error; try again.'
    return { content: [{ type: 'text' as const, text }], isError: true }
  }
}

function toolContext({ mcpReq }: ServerContext): ToolContext {
  const progressToken = mcpReq._meta?.progressToken
  if (progressToken === undefined) return { signal: mcpReq.signal }
  let progress = 0
  const send = (message: string) =>
    mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: ++progress, message } })
  return { signal: mcpReq.signal, progress: send }
}

function addWorkspaceMethods(server: Server, { root, fence, files, endOthers }: Workspace): void {
  const add = <P>(method: string, read: (params: unknown) => P, answer: (params: P) => object | Promise<object>) =>
    server.setRequestHandler(method, { params: anyParams }, async (params) => ({
      ...(await answer(readParams(read, params)))
    }))
  add(WORKSPACE_METHODS.claim, claimParams, ({ epoch }) => claim(fence, epoch))
  add(
    WORKSPACE_METHODS.limits,
    () => null,
    () => readLimits(root.path)
  )
  add(WORKSPACE_METHODS.reach, reachParams, reach)
  add(WORKSPACE_METHODS.changes, changesParams, (params) => files.changes(params))
  add(WORKSPACE_METHODS.restore, restoreParams, (params) => files.restore(params))
  add(WORKSPACE_METHODS.resolve, resolveParams, ({ paths }) => ({
    targets: paths.map((path) => pathTarget(root, path))
  }))
  const written = (real: string) => files.written(root.relative(real))
  add(WORKSPACE_METHODS.change, changeParams, (change) => {
    files.beforeTool()
    return changeFiles(root, change, written)
  })
  add(
    WORKSPACE_METHODS.tidy,
    () => null,
    () => tidy(endOthers)
  )
  add(WORKSPACE_METHODS.fetch, fetchParams, (params) => readParams((given) => files.fetch(given), params))
}

function claim(fence: EpochFence, epoch: number): Record<string, never> {
  if (fence.raise(epoch)) return {}
  const message = `Epoch ${epoch} is outdated: this sandbox has seen ${fence.current()}.`
  throw new ProtocolError(ProtocolErrorCode.InvalidRequest, message, { code: 'stale_epoch' })
}

function targetChanged({ message, target }: TargetChangedError): ProtocolError {
  const data: TargetChanged = { code: 'target_changed', target }
  return new ProtocolError(ProtocolErrorCode.InvalidRequest, message, data)
}

/** Turns a parameter error into the protocol's error for it. */
function readParams<P, R>(read: (params: P) => R, params: P): R {
  try {
    return read(params)
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error))
  }
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message)
}

/** Our own functions read the parameters: loading a schema library would take longer than loading this whole server. */
const anyParams = {
  '~standard': { version: 1 as const, vendor: 'workspace', validate: (value: unknown) => ({ value }) }
}
