import type { TranscriptEntry } from '../../contract/transcript.ts'

/** Whether nothing was said yet. Choosing a model before the first message does not count as a conversation. */
export function isUnsaid(entries: readonly TranscriptEntry[]): boolean {
  return entries.every(({ kind }) => kind === 'fresh-start' || kind === 'model-switch')
}
