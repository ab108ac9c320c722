import { PROGRAMS } from '../../../../contract/own-sources.ts'
import { RUN_CODE } from '../../../../contract/programs.ts'
import type { ToolDefinitionInput } from '../../../calls/offered-tool.ts'
import type { ToolSource } from '../../../calls/tool-source.ts'
import { PROGRAM_API, PROGRAM_PARAMETERS, PROGRAM_PURPOSE, READ_ON_PARAMETERS } from '../../../code/program-page.ts'
import { AppError } from '../../../lib/errors.ts'

const DEFINITION: ToolDefinitionInput = {
  name: RUN_CODE,
  description: `${PROGRAM_PURPOSE}
${PROGRAM_API}
The sandbox's own tools are tools.workspace.read_file and so on. The person decides about each call as about a call of yours; the program waits.
Example: const {content} = await tools.workspace.read_file({path: "data.csv"}); content.split("\\n").length`,
  inputSchema: {
    type: 'object',
    properties: { ...PROGRAM_PARAMETERS, ...READ_ON_PARAMETERS },
    additionalProperties: false
  }
}

/** `run_code` as a source of the chat. Its calls never get here: a program outlives one call of a source (`run-program.ts`). */
export function programSource(): ToolSource {
  return {
    server: PROGRAMS,
    title: 'Programs',
    list: async () => [DEFINITION],
    call: async () => {
      throw new AppError('invalid', 'invalid_request', `${RUN_CODE} can't be called by itself.`)
    }
  }
}
