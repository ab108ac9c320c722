import { isImage, type StoredFile } from '../../contract/stored-files.ts'
import { api } from '../api.ts'

/** Rows are drawn and removed while scrolling; their images are fetched once. */
const MAX_URLS = 100
const urls = new Map<string, Promise<string>>()

/**
 * An address of the page's own for an image of the conversation. It is fetched, because an `<img>` can't send the owner's proof, and it
 * keeps the type that the server found in its bytes, so the browser shows nothing else.
 */
export function imageUrl(sessionId: string, file: StoredFile): Promise<string> {
  const key = `${sessionId} ${file.id}`
  const known = urls.get(key)
  const url = known ?? load(sessionId, file)
  // The most recently used one is the last to go.
  urls.delete(key)
  urls.set(key, url)
  if (!known) url.catch(() => urls.delete(key))
  for (const [oldest, old] of urls) {
    if (urls.size <= MAX_URLS) break
    urls.delete(oldest)
    void old.then(URL.revokeObjectURL, () => {})
  }
  return url
}

async function load(sessionId: string, file: StoredFile): Promise<string> {
  if (!isImage(file)) throw new Error('Only images can be shown.')
  const blob = await (await api.attachment(sessionId, file.id)).blob()
  return URL.createObjectURL(new Blob([blob], { type: file.mediaType }))
}
