import { isRecord } from '../../lib/is-record.ts'

type Answer = Record<string, unknown>

interface RawResultSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'mcp-orchestrator'
    /** Never there; it tells the compiler what comes out. */
    readonly types?: { readonly input: unknown; readonly output: Answer }
    readonly validate: (value: unknown) => { value: Answer } | { issues: { message: string }[] }
  }
}

/** The schema that checks nothing and changes nothing: a child's answers are passed on as they are. */
export const rawResult: RawResultSchema = {
  '~standard': {
    version: 1,
    vendor: 'mcp-orchestrator',
    validate: (value) => (isRecord(value) ? { value } : { issues: [{ message: 'the result is no object' }] })
  }
}

/** Building the SDK's own costs start-up time and memory; a child's output is its client's to judge. */
export const noValidator = {
  getValidator: () => () => ({ valid: true as const, data: undefined as never, errorMessage: undefined })
}
