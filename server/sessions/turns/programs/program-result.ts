import type { EventData } from '../../../../contract/events.ts'
import { outcomeOfRun, workOfRun } from '../../../code/run-answer.ts'
import type { RunState } from '../../../code/run-log.ts'

const CHARS_PER_TOKEN = 4
/** A file of the workspace needs the same decision as any other write. */
const INSTEAD = 'Return less, or store all of it with tools.workspace.write_file.'

type ProgramResult = Pick<EventData<'tool:result'>, 'isError' | 'content' | 'program'>

/** The result of `run_code` for the model and the page. */
export function programContent(state: RunState): ProgramResult {
  const text = JSON.stringify({ ...outcomeOfRun(state, INSTEAD), ...workOfRun(state) }).toWellFormed()
  const saved = { savedTokens: savedTokens(state, text) }
  return { isError: !state.end?.ok, content: [{ type: 'text', text }], program: saved }
}

/** Without the program, the model would have written the arguments and read the results. */
function savedTokens({ calls, program }: RunState, text: string): number {
  let chars = -text.length - (program?.code.length ?? 0)
  for (const { call, done } of calls.values())
    if (call.kind === 'tool') chars += JSON.stringify([call.args, done?.outcome ?? null]).length
  return Math.max(0, Math.round(chars / CHARS_PER_TOKEN))
}
