/** The tool `run_code`: starts, polls and cancels programs, and forms the answers about them. */
import type { CodeRuns, RunReport } from '../../code/code-runs.ts'
import type { RunState } from '../../code/run-log.ts'
import { headOf, tailOf } from '../../lib/cut-text.ts'
import { AppError } from '../../lib/errors.ts'
import type { CallContext } from '../asking/tool-request.ts'
import { Discovery } from '../execute/discovery.ts'
import type { ExtraTool, GatewayServices } from '../gateway-services.ts'
import { gatewayCalls } from './gateway-calls.ts'
import { RUN_CODE } from './run-code-definition.ts'

type Args = Record<string, unknown>

const DEFAULT_TIMEOUT_MS = 300_000
const MAX_TIMEOUT_MS = 1_800_000
/** Limit for one answer to a client: its model pays for every character. */
const MAX_VALUE_CHARS = 32_000
const MAX_LOG_CHARS = 16_000
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
  return answer(
    await report(runs, await runs.start({ code, timeoutMs: readTimeout(timeoutMs), owner: caller.owner, calls }))
  )

  function report(all: CodeRuns, id: string): Promise<RunReport> {
    let texts = 0
    const progress = (message: string) => void onProgress?.({ progress: ++texts, message })
    return all.report(id, { owner: caller.owner, calls, signal, onProgress: progress })
  }
}

function readTimeout(value: unknown): number {
  if (value === undefined) return DEFAULT_TIMEOUT_MS
  if (typeof value === 'number' && value >= 100 && value <= MAX_TIMEOUT_MS) return value
  throw new AppError('invalid', 'invalid_request', `"timeoutMs" must be a number from 100 to ${MAX_TIMEOUT_MS}.`)
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
  return { status, runId, reason, ...(waitingFor.length > 0 ? { waitingFor } : {}), ...figures(state) }
}

function ended(runId: string, state: RunState) {
  const { end } = state
  if (end?.ok) return { status: 'completed', runId, ...value(end.value), ...figures(state) }
  const { code = 'internal', message = '' } = end ?? {}
  const status = code === 'code_cancelled' ? 'cancelled' : code === 'code_expired' ? 'expired' : 'failed'
  const line = end && 'line' in end && end.line ? { line: end.line } : {}
  return { status, runId, error: { code, message, ...line }, ...figures(state) }
}

function value(result: unknown): Record<string, unknown> {
  const text = JSON.stringify(result) ?? 'null'
  if (text.length <= MAX_VALUE_CHARS) return { value: result }
  const cut = `The value has ${text.length} characters; this is its beginning. Return less.`
  return { value: headOf(text, MAX_VALUE_CHARS), cut }
}

function figures({ calls, logs }: RunState): Record<string, unknown> {
  const made = [...calls.values()].filter(({ call }) => call.kind === 'tool').length
  const text = logs.join('\n')
  const cut = text.length > MAX_LOG_CHARS ? `[${text.length - MAX_LOG_CHARS} characters cut]\n` : ''
  return { calls: made, ...(text === '' ? {} : { logs: `${cut}${tailOf(text, MAX_LOG_CHARS)}` }) }
}
