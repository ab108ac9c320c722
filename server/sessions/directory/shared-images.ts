import type { StoredFile } from '../../../contract/stored-files.ts'
import { isFileBlock, isImage } from '../../../contract/stored-files.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import type { SharedImages } from './transcript-html.ts'

/** A file that people share should stay small enough to send. */
const MAX_BYTES = 20_000_000

type Read = (id: string) => Promise<{ file: StoredFile; bytes: Buffer } | undefined>

/** The images of a conversation for a file to share. The newest come first, because those beyond the limit are left out. */
export async function sharedImages({ entries, calls }: Transcript, read: Read): Promise<SharedImages> {
  const files = entries.flatMap((entry): StoredFile[] => {
    if (entry.kind === 'user') return (entry.attachments ?? []).map((file) => file.view ?? file)
    if (entry.kind !== 'call') return []
    return (calls[entry.callId]?.result?.content ?? []).filter(isFileBlock).map(({ file }) => file)
  })
  const images = new Map<string, string>()
  let room = MAX_BYTES
  for (const { id, size } of files.toReversed()) {
    if (images.has(id) || size > room) continue
    const found = await read(id)
    if (!found || !isImage(found.file)) continue
    images.set(id, `data:${found.file.mediaType};base64,${found.bytes.toString('base64')}`)
    room -= found.bytes.length
  }
  return images
}
