/** The tool `run_code`: starts, polls and cancels programs, and forms the answers about them. */
import type { Caller } from '../../calls/caller.ts'
import type { CodeRuns, RunReport } from '../../code/code-runs.ts'
import { outcomeOfRun, workOfRun } from '../../code/run-answer.ts'
import type { RunAsker } from '../../code/run-index.ts'
import type { RunState } from '../../code/run-log.ts'
import { headOf } from '../../lib/cut-text.ts'
import { AppError } from '../../lib/errors.ts'
import type { CallContext } from '../asking/tool-request.ts'
import { Discovery } from '../execute/discovery.ts'
import type { ExtraTool, GatewayServices } from '../gateway-services.ts'
import { gatewayCalls } from './gateway-calls.ts'
import { RUN_CODE } from './run-code-definition.ts'

type Args = Record<string, unknown>

const MAX_ARGS_CHARS = 300

export function runCodeTool(): ExtraTool {
  const discovery = new Discovery()
  return { definition: RUN_CODE, call: (core, args, context) => runCode(core, discovery, args, context) }
}

async function runCode(
  core: GatewayServices,
  discovery: Discovery,
  args: Args,
  { caller, meta, signal, onProgress }: CallContext
): Promise<Record<string, unknown>> {
  const { code, runId, cancel, timeoutMs } = args
  if (core.code === undefined)
    throw new AppError('unavailable', 'code_off', 'Programs are switched off: start the gateway with --code.')
  const { runs } = core.code
  const calls = gatewayCalls(core, discovery, { caller, ...(meta ? { meta } : {}) })
  if (typeof runId === 'string' && code === undefined) {
    if (cancel === true) return answer(await runs.cancel(runId, caller.owner))
    return answer(await report(runs, runId))
  }
  if (typeof code !== 'string' || runId !== undefined || cancel !== undefined) {
    throw new AppError(
      'invalid',
      'invalid_request',
      'Give "code" to run a program, or "runId" of an earlier run, with "cancel" to end it.'
    )
  }
  return answer(await report(runs, await runs.start({ code, timeoutMs, asker: askerOf(caller), calls })))

  function report(all: CodeRuns, id: string): Promise<RunReport> {
    let texts = 0
    const progress = (message: string) => void onProgress?.({ progress: ++texts, message })
    return all.report(id, { owner: caller.owner, calls, signal, onProgress: progress })
  }
}

function askerOf({ owner, door, client }: Caller): RunAsker {
  return { owner, door: door === 'http' ? door : 'stdio', ...(client ? { client } : {}) }
}

function answer({ runId, status, state, expiresAt, queued }: RunReport): Record<string, unknown> {
  const data = status === 'ended' ? ended(runId, state) : open({ runId, state, expiresAt, queued }, status)
  const isError = data.status === 'failed' ? { isError: true } : {}
  return { content: [{ type: 'text', text: JSON.stringify(data) }], structuredContent: data, ...isError }
}

function open({ runId, state, expiresAt, queued }: Omit<RunReport, 'status'>, status: 'running' | 'waiting') {
  const asked = [...state.calls.values()].filter((each) => each.asked !== undefined)
  const how = `Call run_code with {"runId": "${runId}"} to continue.`
  const reason =
    status === 'running'
      ? `${queued ?? 'The program is still running.'} ${how}`
      : `A person has to approve ${asked.length === 1 ? 'a call' : `${asked.length} calls`} in the web page, under "Waiting for you" ("mcp-orchestrator serve" on the same store). ${how} The run is given up at ${new Date(expiresAt).toISOString()}.`
  const waitingFor = asked.map(({ call: { n, server, tool, args, line } }) => {
    return { n, server, tool, line, args: headOf(JSON.stringify(args), MAX_ARGS_CHARS) }
  })
  return { status, runId, reason, ...(waitingFor.length > 0 ? { waitingFor } : {}), ...workOfRun(state) }
}

function ended(runId: string, state: RunState) {
  return { status: endedStatus(state), runId, ...outcomeOfRun(state), ...workOfRun(state) }
}

function endedStatus({ end }: RunState): string {
  if (end?.ok) return 'completed'
  return end?.code === 'code_cancelled' ? 'cancelled' : end?.code === 'code_expired' ? 'expired' : 'failed'
}
