/** The tool as a client sees it. The description is all that a model must know to write a program; a test runs its example. */
import { PROGRAM_API, PROGRAM_PARAMETERS, PROGRAM_PURPOSE, READ_ON_PARAMETERS } from '../../code/program-page.ts'
import type { GatewayTool } from '../gateway-services.ts'

const DESCRIPTION = `${PROGRAM_PURPOSE}
${PROGRAM_API}
Calls that may write wait for a person's approval: the answer is then {status:"waiting", runId, reason}. Call again with {runId} to get the result (also after "running"), or {runId, cancel:true}. The program is replayed from its log: no call is made twice.
Example: const {content} = await tools.filesystem.read_text_file({path: "/data/report.csv"}); content.split("\\n").length`

export const RUN_CODE: GatewayTool = {
  name: 'run_code',
  title: 'Run a program',
  description: DESCRIPTION,
  inputSchema: {
    type: 'object' as const,
    properties: {
      ...PROGRAM_PARAMETERS,
      runId: { type: 'string', description: 'An earlier run.' },
      cancel: { type: 'boolean', description: 'With "runId": ends the run.' },
      ...READ_ON_PARAMETERS
    },
    additionalProperties: false
  },
  annotations: { readOnlyHint: false, openWorldHint: true }
}
