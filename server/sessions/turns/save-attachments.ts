/** Puts the files that a person attached to a message into the workspace, so that tools can use them. */
import { posix } from 'node:path'
import type { AddedFile, Attachment } from '../../../contract/attachments.ts'
import type { Transcript, TranscriptEntry } from '../../../contract/transcript.ts'
import { AppError, messageOf } from '../../lib/errors.ts'
import type { ContentStore } from '../../storage/checkpoint-store.ts'
import type { NewEvent } from '../../storage/event-log.ts'
import type { Workspace } from '../sandboxes/open-workspace.ts'
import { isOwnershipError } from '../sandboxes/ownership-error.ts'
import type { HeldSession } from '../sandboxes/session-manager.ts'
import { noticeOf } from './turn-events.ts'

const FOLDER = 'attachments'
const CHUNK_BYTES = 1024 * 1024
const MAX_NAMES_TRIED = 50

interface SaveInput {
  hold: HeldSession
  sessionId: string
  contents: ContentStore
  transcript: Transcript
  signal: AbortSignal
}

/**
 * Returns the events to store; none if there is nothing to save. If it fails, that is recorded too: the model is told, and the turn
 * goes on without the files.
 */
export async function saveAttachments({ hold, transcript, signal, ...input }: SaveInput): Promise<NewEvent[]> {
  const message = unsavedMessage(transcript)
  if (!message) return []
  const { turnId, attachments } = message
  const key = `files:${turnId}`
  try {
    const workspace = await hold.workspace(signal)
    const files: AddedFile[] = []
    for (const attachment of attachments) files.push(await save(workspace, attachment, input))
    await workspace.saveFiles()
    return [{ type: 'files:added', data: { turnId, files }, key }]
  } catch (error) {
    if (signal.aborted || isOwnershipError(error)) throw error
    const why = `The attached files are not in the workspace, only in the conversation: ${messageOf(error)}`
    return [{ type: 'files:added', data: { turnId, files: [] }, key }, noticeOf('attachments_not_saved', why)]
  }
}

type UserEntry = Extract<TranscriptEntry, { kind: 'user' }>

function unsavedMessage({ entries }: Transcript): { turnId: string; attachments: Attachment[] } | undefined {
  const last = entries.findLast((entry): entry is UserEntry => entry.kind === 'user')
  return last?.attachments && !last.files ? { turnId: last.turnId, attachments: last.attachments } : undefined
}

async function save(
  workspace: Workspace,
  { id, name, size }: Attachment,
  { sessionId, contents }: Pick<SaveInput, 'sessionId' | 'contents'>
): Promise<AddedFile> {
  const bytes = await contents.getContent(sessionId, id)
  if (!bytes) throw new AppError('not-found', 'attachment_unknown', `"${name}" is no longer stored.`)
  const path = await freePath(workspace, name)
  for (let offset = 0; offset === 0 || offset < bytes.length; offset += CHUNK_BYTES) {
    const content = bytes.subarray(offset, offset + CHUNK_BYTES).toString('base64')
    const args = { path, content, encoding: 'base64', append: offset > 0 }
    const result = await workspace.callUnrecorded('write_file', args)
    if (result.isError) throw new AppError('unavailable', 'file_refused', sentenceOf(result.content))
  }
  return { path, size, attachment: id }
}

/** Never replaces a file: a second `a.png` becomes `a-2.png`. */
async function freePath(workspace: Workspace, name: string): Promise<string> {
  const { name: stem, ext } = posix.parse(name)
  const paths = Array.from({ length: MAX_NAMES_TRIED }, (_, at) => {
    return `${FOLDER}/${stem}${at === 0 ? '' : `-${at + 1}`}${ext}`
  })
  const targets = await workspace.resolve(paths)
  const free = paths.find((_, at) => targets[at]?.is === 'new')
  if (free !== undefined) return free
  throw new AppError('unavailable', 'file_refused', `There is no free name for "${name}" in the folder ${FOLDER}.`)
}

function sentenceOf(content: readonly unknown[]): string {
  const [first] = content as { text?: unknown }[]
  return String(first?.text ?? 'The sandbox refused the file.').slice(0, 500)
}
