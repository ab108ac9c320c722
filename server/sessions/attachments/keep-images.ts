import type { FileBlock } from '../../../contract/stored-files.ts'
import { isRecord } from '../../lib/is-record.ts'
import { sniffMedia } from '../../lib/media/sniff-media.ts'
import type { ContentStore } from '../../storage/checkpoint-store.ts'

/** More images of one result stay as they are, and are left out of the log if they are too large for it. */
const MAX_FILES = 20
const MAX_FILE_BYTES = 10 * 1024 * 1024

/**
 * Moves the images and PDFs of a tool's result out of it and into the store, so that the log stays small and the model can be shown
 * them later. Anything that is not what it says stays as it is.
 */
export async function keepImages(
  contents: ContentStore,
  sessionId: string,
  content: readonly unknown[]
): Promise<unknown[]> {
  const kept: unknown[] = []
  let room = MAX_FILES
  for (const part of content) {
    const block = room > 0 ? await keepImage(contents, sessionId, part) : undefined
    if (block) room -= 1
    kept.push(block ?? withoutFile(part))
  }
  return kept
}

async function keepImage(contents: ContentStore, sessionId: string, part: unknown): Promise<FileBlock | undefined> {
  const given = dataOf(part)
  if (!given || given.data.length > (MAX_FILE_BYTES * 4) / 3 + 4) return undefined
  const bytes = Buffer.from(given.data, 'base64')
  const media = sniffMedia(bytes)
  if (!media) return undefined
  const id = await contents.putContent(sessionId, bytes)
  const type = media.width === undefined ? 'file' : 'image'
  const name = given.uri === undefined ? {} : { name: given.uri.slice(0, 200) }
  return { type, mimeType: media.mediaType, file: { id, ...media, size: bytes.length }, ...name }
}

/** Only we name stored content: a tool that did it could show the model other files of the session as its own result. */
function withoutFile(part: unknown): unknown {
  if (!isRecord(part) || !('file' in part)) return part
  const { file: _, ...rest } = part
  return rest
}

/** An image block, or an embedded resource with binary content. */
function dataOf(part: unknown): { data: string; uri?: string } | undefined {
  if (!isRecord(part)) return undefined
  if (part.type === 'image' && typeof part.data === 'string') return { data: part.data }
  const resource = part.type === 'resource' && isRecord(part.resource) ? part.resource : undefined
  if (typeof resource?.blob !== 'string') return undefined
  return { data: resource.blob, ...(typeof resource.uri === 'string' && { uri: resource.uri }) }
}
