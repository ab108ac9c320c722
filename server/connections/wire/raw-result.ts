import { isRecord } from '../../lib/is-record.ts'

type Answer = Record<string, unknown>

interface RawResultSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'mcp-orchestrator'
    /** Never set; it gives the compiler the output type. */
    readonly types?: { readonly input: unknown; readonly output: Answer }
    readonly validate: (value: unknown) => { value: Answer } | { issues: { message: string }[] }
  }
}

/** A schema that checks and changes nothing: a child's answers are passed on unchanged. */
export const rawResult: RawResultSchema = {
  '~standard': {
    version: 1,
    vendor: 'mcp-orchestrator',
    validate: (value) => (isRecord(value) ? { value } : { issues: [{ message: 'the result is no object' }] })
  }
}

/** Building the SDK's validator costs startup time and memory; the client validates a child's output itself. */
export const noValidator = {
  getValidator: () => () => ({ valid: true as const, data: undefined as never, errorMessage: undefined })
}
