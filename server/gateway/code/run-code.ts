/** The tool `run_code`: starts, polls and cancels programs, and forms the answers about them. */
import type { Caller } from '../../calls/caller.ts'
import type { RunReport } from '../../code/active-run.ts'
import type { CodeRuns } from '../../code/code-runs.ts'
import { pieceOf, wholeOutcome } from '../../code/long-outcome.ts'
import { outcomeOfRun, type ReadOn, workOfRun } from '../../code/run-answer.ts'
import type { RunAsker } from '../../code/run-index.ts'
import type { RunState } from '../../code/run-log.ts'
import { headOf } from '../../lib/cut-text.ts'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { CallContext } from '../asking/tool-request.ts'
import { Discovery } from '../execute/discovery.ts'
import type { ExtraTool, GatewayServices, TaskAction } from '../gateway-services.ts'
import { gatewayCalls } from './gateway-calls.ts'
import { RUN_CODE } from './run-code-definition.ts'

type Args = Record<string, unknown>

const MAX_ARGS_CHARS = 300
/** How often a client should ask about a task. */
const POLL_MS = 2000

export function runCodeTool(): ExtraTool {
  const discovery = new Discovery()
  return {
    definition: RUN_CODE,
    call: (core, args, context) => runCode(core, discovery, args, context),
    task: (core, action, taskId, context) => aboutTask(core, discovery, { action, taskId }, context)
  }
}

async function runCode(
  core: GatewayServices,
  discovery: Discovery,
  args: Args,
  { caller, meta, signal, onProgress, takesTasks }: CallContext
): Promise<Record<string, unknown>> {
  const { code, runId, cancel, timeoutMs, from, of } = args
  const runs = runsOf(core)
  const calls = gatewayCalls(core, discovery, { caller, ...(meta ? { meta } : {}) })
  if (typeof runId === 'string' && code === undefined) {
    if (cancel === true) return answer(await runs.cancel(runId, caller.owner))
    if (from !== undefined) {
      const { state } = await runs.report(runId, { owner: caller.owner, calls, signal }, 0)
      return answered({ runId, ...pieceOf(wholeOutcome(state), from, of) })
    }
    return answer(await report(runs, runId))
  }
  if (typeof code !== 'string' || runId !== undefined || cancel !== undefined) {
    throw new AppError(
      'invalid',
      'invalid_request',
      'Give "code" to run a program, or "runId" of an earlier run, with "cancel" to end it or "from" to read on in its value.'
    )
  }
  const started = await runs.start({ code, timeoutMs, asker: askerOf(caller), calls })
  const now = await report(runs, started)
  return takesTasks && now.status !== 'ended' ? { resultType: 'task', ...taskOf(now) } : answer(now)

  function report(all: CodeRuns, id: string): Promise<RunReport> {
    let texts = 0
    const progress = (message: string) => void onProgress?.({ progress: ++texts, message })
    return all.report(id, { owner: caller.owner, calls, signal, onProgress: progress })
  }
}

/** A run as a task: its state and, at its end, what the call would have answered. */
async function aboutTask(
  core: GatewayServices,
  discovery: Discovery,
  { action, taskId }: { action: TaskAction; taskId: string },
  { caller, signal }: CallContext
): Promise<Record<string, unknown>> {
  const runs = runsOf(core)
  if (action === 'cancel') {
    await runs.cancel(taskId, caller.owner)
    return {}
  }
  const calls = gatewayCalls(core, discovery, { caller })
  const report = await runs.report(taskId, { owner: caller.owner, calls, signal }, 0)
  // A program asks a person in the page, never its client.
  return action === 'update' ? {} : taskOf(report)
}

function taskOf(report: RunReport): Record<string, unknown> {
  const { runId, status, state, expiresAt } = report
  const from = state.program?.startedAt ?? 0
  const result = answer(report)
  const data = isRecord(result.structuredContent) ? result.structuredContent : {}
  const times = {
    ...{ createdAt: new Date(from).toISOString(), lastUpdatedAt: new Date(state.updatedAt ?? from).toISOString() },
    ...{ ttlMs: expiresAt - from, pollIntervalMs: POLL_MS }
  }
  if (status !== 'ended') return { taskId: runId, status: 'working', statusMessage: String(data.reason), ...times }
  if (data.status === 'cancelled') return { taskId: runId, status: 'cancelled', ...times }
  return { taskId: runId, status: 'completed', ...times, result: { ...result, resultType: 'complete' } }
}

function runsOf({ code }: GatewayServices): CodeRuns {
  if (code) return code.runs
  throw new AppError('unavailable', 'code_off', 'Programs are switched off: start the gateway with --code.')
}

function askerOf({ owner, door, client }: Caller): RunAsker {
  return { owner, door: door === 'http' ? door : 'stdio', ...(client ? { client } : {}) }
}

function answer({ runId, status, state, expiresAt, queued }: RunReport): Record<string, unknown> {
  const data = status === 'ended' ? ended(runId, state) : open({ runId, state, expiresAt, queued }, status)
  return answered(data)
}

function answered(data: Record<string, unknown>): Record<string, unknown> {
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
  return {
    status,
    runId,
    reason,
    ...(waitingFor.length > 0 ? { waitingFor } : {}),
    ...workOfRun(state, readOnIn(runId))
  }
}

function ended(runId: string, state: RunState) {
  return {
    status: endedStatus(state),
    runId,
    ...outcomeOfRun(state, readOnIn(runId)),
    ...workOfRun(state, readOnIn(runId))
  }
}

function endedStatus({ end }: RunState): string {
  if (end?.ok) return 'completed'
  return end?.code === 'code_cancelled' ? 'cancelled' : end?.code === 'code_expired' ? 'expired' : 'failed'
}

function readOnIn(runId: string): ReadOn {
  return (place) => `Read on with run_code ${JSON.stringify({ runId, ...place })}, or return less.`
}
