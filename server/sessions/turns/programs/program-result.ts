import type { EventData } from '../../../../contract/events.ts'
import type { RunState } from '../../../code/run-log.ts'
import { headOf, tailOf } from '../../../lib/cut-text.ts'

/** The model pays for all that it gets. */
const MAX_VALUE_CHARS = 32_000
const MAX_LOG_CHARS = 16_000
const CHARS_PER_TOKEN = 4

type ProgramResult = Pick<EventData<'tool:result'>, 'isError' | 'content' | 'program'>

/** The result of `run_code` for the model and the page. */
export function programContent(state: RunState): ProgramResult {
  const { end, calls, logs } = state
  const made = [...calls.values()].filter(({ call }) => call.kind === 'tool').length
  const printed = logs.join('\n')
  const cut = printed.length > MAX_LOG_CHARS ? `[${printed.length - MAX_LOG_CHARS} characters cut]\n` : ''
  const more = { calls: made, ...(printed === '' ? {} : { logs: `${cut}${tailOf(printed, MAX_LOG_CHARS)}` }) }
  const data = end?.ok ? { ...shownValue(end.value), ...more } : { error: shownError(end), ...more }
  const text = JSON.stringify(data).toWellFormed()
  const saved = { savedTokens: savedTokens(state, text) }
  return { isError: !end?.ok, content: [{ type: 'text', text }], program: saved }
}

function shownValue(value: unknown): Record<string, unknown> {
  const text = JSON.stringify(value) ?? 'null'
  if (text.length <= MAX_VALUE_CHARS) return { value }
  return {
    value: headOf(text, MAX_VALUE_CHARS),
    cut: `The value has ${text.length} characters; this is its beginning.`
  }
}

function shownError(end: RunState['end']): Record<string, unknown> {
  if (!end || end.ok) return { code: 'internal', message: 'The program has no end.' }
  const line = 'line' in end && end.line ? { line: end.line } : {}
  return { code: end.code, message: end.message, ...line }
}

/** Without the program, the model would have written the arguments and read the results. */
function savedTokens({ calls, program }: RunState, text: string): number {
  let chars = -text.length - (program?.code.length ?? 0)
  for (const { call, done } of calls.values())
    if (call.kind === 'tool') chars += JSON.stringify([call.args, done?.outcome ?? null]).length
  return Math.max(0, Math.round(chars / CHARS_PER_TOKEN))
}
