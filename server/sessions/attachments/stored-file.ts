/**
 * Files of a conversation: what a person attaches to a message, and images in the results of tools. Their content is stored by its
 * hash, apart from the log, which names it. The kind of a file is read from its bytes, never from its name or a claim.
 */
import { isUtf8 } from 'node:buffer'
import type { Attachment, AttachmentInput } from '../../../contract/attachments.ts'
import { isImage, type StoredFile } from '../../../contract/stored-files.ts'
import { headOf } from '../../lib/cut-text.ts'
import { AppError } from '../../lib/errors.ts'
import { sniffMedia } from '../../lib/media/sniff-media.ts'
import type { ContentStore } from '../../storage/checkpoint-store.ts'
import type { EventLog, StoredEvent } from '../../storage/event-log.ts'

const MAX_NAME_CHARS = 100
const EVENTS_AT_ONCE = 100

export async function storeFile(contents: ContentStore, sessionId: string, bytes: Buffer): Promise<StoredFile> {
  return { id: await contents.putContent(sessionId, bytes), ...describe(bytes) }
}

/** Returns undefined if the session has no such file. */
export async function readFile(
  contents: ContentStore,
  sessionId: string,
  id: string
): Promise<{ file: StoredFile; bytes: Buffer } | undefined> {
  const bytes = await contents.getContent(sessionId, id)
  return bytes && { bytes, file: { id, ...describe(bytes) } }
}

/** Removes a file that was attached and then taken out of the message. It stays if anything in the conversation names it. */
export async function removeUnsent(
  contents: ContentStore,
  events: Pick<EventLog, 'read'>,
  sessionId: string,
  id: string
): Promise<void> {
  const bytes = await contents.getContent(sessionId, id)
  if (bytes === undefined) return
  const before = await lookFor(id, events, sessionId, 0)
  if (before.isNamed) return
  await contents.removeContent(sessionId, id)
  // A message may have named it meanwhile.
  if ((await lookFor(id, events, sessionId, before.after)).isNamed) await contents.putContent(sessionId, bytes)
}

/** Whether an event after this one names the file, and the last event. */
async function lookFor(
  id: string,
  events: Pick<EventLog, 'read'>,
  sessionId: string,
  from: number
): Promise<{ isNamed: boolean; after: number }> {
  for (let after = from; ; ) {
    const page = await events.read(sessionId, { after, limit: EVENTS_AT_ONCE })
    if (page.some(({ data }) => JSON.stringify(data).includes(id))) return { isNamed: true, after }
    const last = page.at(-1)
    if (!last) return { isNamed: false, after }
    after = last.seq
  }
}

/** Tells which of these contents the logs name. */
export async function namedContents(
  events: Pick<EventLog, 'read'>,
  logIds: readonly string[],
  hashes: ReadonlySet<string>
): Promise<Set<string>> {
  const named = new Set<string>()
  for (const logId of logIds) {
    for (let after: number | undefined = 0; after !== undefined && named.size < hashes.size; ) {
      const page: StoredEvent[] = await events.read(logId, { after, limit: EVENTS_AT_ONCE })
      for (const { data } of page) {
        for (const [hash] of JSON.stringify(data).matchAll(/[0-9a-f]{64}/g)) if (hashes.has(hash)) named.add(hash)
      }
      after = page.at(-1)?.seq
    }
  }
  return named
}

/** Completes what a message says about its files from what is stored. */
export async function lookUpAttachments(
  contents: ContentStore,
  sessionId: string,
  given: readonly AttachmentInput[]
): Promise<Attachment[]> {
  const found: Attachment[] = []
  for (const { id, name, view } of given) {
    const file = await lookUp(contents, sessionId, id)
    const smaller = view === undefined ? undefined : await lookUp(contents, sessionId, view)
    if (smaller && !isImage(smaller))
      throw new AppError('invalid', 'attachment_unknown', 'The smaller version of a file must be an image.')
    found.push({ ...file, name: plainName(name), ...(smaller && { view: smaller }) })
  }
  return found
}

async function lookUp(contents: ContentStore, sessionId: string, id: string): Promise<StoredFile> {
  const found = await readFile(contents, sessionId, id)
  if (!found) {
    throw new AppError('invalid', 'attachment_unknown', 'An attached file is not there any more; attach it again.')
  }
  // It may be about to be removed, because no log names it yet.
  await contents.putContent(sessionId, found.bytes)
  return found.file
}

function describe(bytes: Buffer): Omit<StoredFile, 'id'> {
  const media = sniffMedia(bytes)
  if (media) return { ...media, size: bytes.length }
  const isText = bytes.length > 0 && !bytes.includes(0) && isUtf8(bytes)
  return { mediaType: isText ? 'text/plain' : 'application/octet-stream', size: bytes.length }
}

/** A name that is safe as the name of a file: one part of a path, without control characters, and not hidden. */
function plainName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be in a name.
  const clean = last.toWellFormed().replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '')
  const visible = clean.replace(/^[.\s]+/, '').trim()
  if (visible.length <= MAX_NAME_CHARS) return visible || 'file'
  const [extension = ''] = /\.[^.]{1,10}$/.exec(visible) ?? []
  return headOf(visible, MAX_NAME_CHARS - extension.length) + extension
}
