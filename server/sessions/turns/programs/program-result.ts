import type { EventData } from '../../../../contract/events.ts'
import { outcomeOfRun, type ReadOn, workOfRun } from '../../../code/run-answer.ts'
import type { RunState } from '../../../code/run-log.ts'

const CHARS_PER_TOKEN = 4
/** It is kept apart from the workspace: a file there needs the same decision as any other write. */
const readOn: ReadOn = (place) =>
  `Read on with run_code ${JSON.stringify(place)} until another program has ended, or return less. To have it as a file, store it in the program with tools.workspace.write_file.`

type ProgramResult = Pick<EventData<'tool:result'>, 'isError' | 'content' | 'program'>

/** The result of `run_code` for the model and the page. */
export function programContent(state: RunState): ProgramResult {
  const text = JSON.stringify({ ...outcomeOfRun(state, readOn), ...workOfRun(state, readOn) }).toWellFormed()
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
