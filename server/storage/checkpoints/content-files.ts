/**
 * Content that a session's conversation names by its hash, such as an image: one file each, in the session's folder. So it is
 * counted, backed up and removed with the session's files. A file is complete as soon as it has its name, and never changes.
 */
import { createHash, randomUUID } from 'node:crypto'
import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'
import { contentDamaged, translateFileError } from './checkpoint-errors.ts'

const HASH = /^[0-9a-f]{64}$/
export const CONTENT_NAME = /^[0-9a-f]{64}\.content$/

export async function putContent(folder: string, bytes: Uint8Array): Promise<string> {
  const hash = createHash('sha256').update(bytes).digest('hex')
  const path = join(folder, `${hash}.content`)
  if (await exists(path)) return hash
  const draft = join(folder, `${randomUUID()}.content-draft`)
  try {
    makeFolder(folder)
    const handle = await open(draft, 'wx', 0o600)
    try {
      await handle.writeFile(bytes)
      await handle.datasync()
    } finally {
      await handle.close()
    }
    await rename(draft, path)
    return hash
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {})
    throw translateFileError(error)
  }
}

/** Returns undefined if this session has no such content. */
export async function getContent(folder: string, hash: string): Promise<Buffer | undefined> {
  if (!HASH.test(hash)) return undefined
  const bytes = await readFile(join(folder, `${hash}.content`)).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw translateFileError(error)
  })
  if (bytes && createHash('sha256').update(bytes).digest('hex') !== hash) throw contentDamaged()
  return bytes
}

export async function removeContent(folder: string, hash: string): Promise<void> {
  if (!HASH.test(hash)) return
  await rm(join(folder, `${hash}.content`), { force: true }).catch((error: unknown) => {
    throw translateFileError(error)
  })
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false
  )
}
