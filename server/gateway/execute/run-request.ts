import { CallProgress } from '../../audit/call-end.ts'
import type { Caller } from '../../calls/caller.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { endOf } from './record-route.ts'
import { refuseDenied } from './run-tool.ts'

export interface PassedRequest {
  server: string
  method: string
  params: Record<string, unknown>
  caller: Caller
}

/** Requests that only list what there is; all others are recorded. */
const LISTS: Record<string, string> = {
  'resources/list': 'resources/read',
  'resources/templates/list': 'resources/read',
  'prompts/list': 'prompts/get'
}

/**
 * Sends a request that is not a tool call to a server, such as reading a resource. Rules match its method like a tool's name, so
 * `*` covers it too; only a `deny` counts. Like a call, it is recorded before it is made.
 */
export async function runRequest<T>(core: GatewayServices, request: PassedRequest, job: () => Promise<T>): Promise<T> {
  const { server, method, params, caller } = request
  const listed = LISTS[method]
  if (listed !== undefined) {
    refuseDenied(core, server, listed)
    return job()
  }
  const end = core.audit.begin({ caller, server, tool: method, args: params })
  const progress = new CallProgress()
  try {
    refuseDenied(core, server, method)
    progress.sending()
    const result = await job()
    end({ outcome: 'ok', calledMs: progress.calledMs })
    return result
  } catch (error) {
    end({ ...endOf(error, progress.stage), calledMs: progress.calledMs })
    throw error
  }
}

export function isDenied({ policy }: GatewayServices, server: string, method: string): boolean {
  return policy(server, LISTS[method] ?? method) === 'deny'
}
