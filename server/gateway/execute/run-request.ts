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

/** What tells a client only what there is; everything else goes on record. */
const LISTS: Record<string, string> = {
  'resources/list': 'resources/read',
  'resources/templates/list': 'resources/read',
  'prompts/list': 'prompts/get'
}

/**
 * The way to a server for what is no tool call, such as reading a resource. The rules know it by its method as they know a tool by
 * its name, so that `*` stands for it too; only a `deny` counts. Like a call, it is on record before it is made.
 */
export async function runRequest<T>(core: GatewayServices, wish: PassedRequest, job: () => Promise<T>): Promise<T> {
  const { server, method, params, caller } = wish
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
