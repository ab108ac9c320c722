import type { AddedFile, Attachment } from '../../contract/attachments.ts'
import type { EventData, SessionEvent } from '../../contract/events.ts'
import { describeFile, isImage, MAX_TEXT_BYTES } from '../../contract/stored-files.ts'
import type { ChatFile, ChatMessage } from '../models/port.ts'

/** Where the attachments of messages are in the workspace, by the turns of the messages. */
export function savedAttachments(events: readonly SessionEvent[]): Map<string, AddedFile[]> {
  return new Map(events.flatMap(({ type, data }) => (type === 'files:added' ? [[data.turnId, data.files]] : [])))
}

/** A person's message in the form that the model gets: with its files, and a note about what is in the workspace. */
export function userMessage(
  { turnId, text, attachments = [] }: EventData<'user:message'>,
  saved: ReadonlyMap<string, AddedFile[]>,
  notes: readonly string[]
): ChatMessage {
  const lines = attachments.map((file) => attachmentNote(file, saved.get(turnId) ?? []))
  lines.push(...notes)
  const files = attachments.flatMap(shownFile)
  return {
    role: 'user',
    text: text.toWellFormed(),
    ...(lines.length > 0 && { note: lines.join('\n').toWellFormed() }),
    ...(files.length > 0 && { files })
  }
}

/** A name is hostile text, so it is quoted. */
function attachmentNote(file: Attachment, saved: AddedFile[]): string {
  const path = saved.find(({ attachment }) => attachment === file.id)?.path
  const where =
    path === undefined ? 'It is not in the workspace.' : `It is in the workspace as ${JSON.stringify(path)}.`
  return `[The user attached ${JSON.stringify(file.name)} (${describeFile(file)}). ${where}]`
}

/** Other files are only in the workspace. */
function shownFile({ view, name, ...file }: Attachment): ChatFile[] {
  const { mediaType, size } = file
  if (view || isImage(file)) return [{ ...(view ?? file), name }]
  const isShown = mediaType === 'application/pdf' || (mediaType === 'text/plain' && size <= MAX_TEXT_BYTES)
  return isShown ? [{ ...file, name }] : []
}
