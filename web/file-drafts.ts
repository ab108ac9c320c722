/** Edits of files that are not saved, in the browser's storage: they survive a reload and the end of the tab. */
import { recall, remember } from './remembered.ts'
import type { TextFile } from './text/files/text-file.ts'

/** An edit that is not saved. It is kept when the file is closed, until it is saved or discarded. */
export interface FileDraft {
  text: string
  opened: TextFile
  etag: string
}

/** The key of a session's edits begins with this and ends with its id. */
export const EDITED = 'edited-files:'
/** The browser has room for about five million characters, of all sessions together. */
const MAX_CHARS = 1_000_000

/** Returns false if a reload would lose them: they are too long, or the browser stores nothing. */
export function rememberEdits(sessionId: string, edits: [path: string, draft: FileDraft][]): boolean {
  const text = edits.length === 0 ? null : JSON.stringify(edits)
  const kept = text !== null && text.length <= MAX_CHARS ? text : null
  for (const where of ['tab', 'browser'] as const) remember(`${EDITED}${sessionId}`, kept, where)
  return recall(`${EDITED}${sessionId}`, 'tab') === text
}

/** This tab's own edits come first. A new tab begins with the last edits of any tab. */
export function recallEdits(sessionId: string): [path: string, draft: FileDraft][] {
  const text = recall(`${EDITED}${sessionId}`, 'tab') ?? recall(`${EDITED}${sessionId}`)
  return JSON.parse(text ?? '[]') as [string, FileDraft][]
}
