import type { CallEntry } from '../../../contract/transcript.ts'

type Result = NonNullable<CallEntry['result']>

/** The call as if what it did in the fork had been kept, to show its output. While it runs, it has no result yet. */
export function previewedCall(call: CallEntry): CallEntry {
  const startedAt = call.startedAt ?? call.requestedAt
  const { preview } = call
  if (!preview) return { ...call, startedAt }
  const { isError, content, ending, replaced } = preview.result
  const { durationMs } = preview
  const result: Result = {
    ...{ isError, content, at: preview.at },
    ...(durationMs !== undefined && { durationMs }),
    ...(ending !== undefined && { ending: ending as Result['ending'] }),
    ...(replaced !== undefined && { replaced: replaced as Result['replaced'] })
  }
  return { ...call, startedAt, result }
}
