/**
 * The tasks extension (SEP-2663): a client that speaks it gets a handle for a call that takes long, and asks about it later. Owns the messages,
 * not the work: a task is a run of a program, so any instance knows it, and it outlives every process.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
  type StandardSchemaV1
} from '@modelcontextprotocol/server'
import { isAppError } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import type { CallContext } from './asking/tool-request.ts'
import type { TaskAction } from './gateway-services.ts'

interface TaskGateway {
  hasTasks: boolean
  task(action: TaskAction, taskId: string, context: CallContext): Promise<Record<string, unknown>>
}

const EXTENSION = 'io.modelcontextprotocol/tasks'
const METHODS: [method: string, action: TaskAction][] = [
  ['tasks/get', 'get'],
  ['tasks/update', 'update'],
  ['tasks/cancel', 'cancel']
]

export function taskCapability({ hasTasks }: TaskGateway) {
  return hasTasks ? { extensions: { [EXTENSION]: {} } } : {}
}

/** Whether this request says that its client takes tasks. */
export function takesTasks({ mcpReq }: ServerContext): boolean {
  const { [CLIENT_CAPABILITIES_META_KEY]: capabilities }: Record<string, unknown> = { ...mcpReq.envelope }
  const extensions = isRecord(capabilities) ? capabilities.extensions : undefined
  return isRecord(extensions) && isRecord(extensions[EXTENSION])
}

export function handleTasks(
  server: Server,
  gateway: TaskGateway,
  contextOf: (context: ServerContext) => CallContext
): void {
  if (!gateway.hasTasks) return
  for (const [method, action] of METHODS) {
    server.setRequestHandler(method, { params: TASK_ID }, async ({ taskId }, context) => {
      if (!takesTasks(context))
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [EXTENSION]: {} } } })
      try {
        return await gateway.task(action, taskId, contextOf(context))
      } catch (error) {
        if (!isAppError(error)) throw error
        const code = error.kind === 'not-found' ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
        throw new ProtocolError(code, error.message)
      }
    })
  }
}

const TASK_ID: StandardSchemaV1<{ taskId: string }> = {
  '~standard': {
    version: 1,
    vendor: 'mcp-orchestrator',
    validate: (params: unknown) =>
      isRecord(params) && typeof params.taskId === 'string'
        ? { value: { taskId: params.taskId } }
        : { issues: [{ message: '"taskId" must be a text.' }] }
  }
}
