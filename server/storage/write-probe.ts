import { randomUUID } from 'node:crypto'
import { rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, messageOf } from '../lib/errors.ts'
import { makeFolder } from '../lib/files/make-folder.ts'
import type { KeyValueStore } from './key-value-store.ts'

const MB = 1024 * 1024
/** Larger than a page of any file system or database: a write that fits into allocated space proves nothing. */
const PROBE_BYTES = 16 * 1024

/** Writes a real file there and checks the free space. Throws an error that says what to do. */
export async function probeFolder(folder: string, minFreeMb: number): Promise<string> {
  const file = join(folder, `.write-probe-${randomUUID()}`)
  try {
    makeFolder(folder)
    await writeFile(file, Buffer.alloc(PROBE_BYTES, 1), { mode: 0o600, flush: true })
  } catch (error) {
    const message = `${folder} can't be written (${messageOf(error)}): free space there, or check its permissions.`
    throw new AppError('unavailable', 'folder_not_writable', message, { cause: error })
  } finally {
    await rm(file, { force: true }).catch(() => {})
  }
  const { bavail, bsize } = await statfs(folder)
  const freeMb = Math.floor((bavail * bsize) / MB)
  if (freeMb >= minFreeMb) return `${freeMb} MB free`
  const message = `Only ${freeMb} MB are free in ${folder}, and MIN_FREE_MB is ${minFreeMb}: free space there.`
  throw new AppError('unavailable', 'disk_almost_full', message)
}

/** Writes a real value to the store and reads it back. */
export async function probeStore(keyValues: KeyValueStore): Promise<void> {
  const value = randomUUID().padEnd(PROBE_BYTES, '.')
  await keyValues.set('write-probe', 'probe', value)
  if (typeof (await keyValues.get('write-probe', 'probe')) === 'string') return
  throw new AppError('unavailable', 'store_lost_write', 'The store accepted a write but did not keep it.')
}
