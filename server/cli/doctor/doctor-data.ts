import { randomBytes, randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'

const BYTES = 64 * 1024

/** Writes to the data folder, reads it back, and removes the file and every folder that it created. */
export function describeDataDir(folder: string): string {
  let made: string | undefined
  const file = join(folder, `.doctor-${randomUUID()}`)
  try {
    made = makeFolder(folder)
    writeAndRead(file)
    return `${folder} is writable${made === undefined ? '' : '; the first start creates it'}`
  } catch (error) {
    const advice = 'check DATA_DIR, its permissions and the free space of its disk'
    throw new Error(`The data folder ${folder} can't be written (${messageOf(error)}): ${advice}.`)
  } finally {
    tidy(() => rmSync(file, { force: true }))
    if (made !== undefined) tidy(() => removeEmpty(folder, made ?? folder))
  }
}

/** A failed clean-up must not hide the result of the check. */
function tidy(job: () => void): void {
  try {
    job()
  } catch {}
}

function writeAndRead(file: string): void {
  const written = randomBytes(BYTES)
  const handle = openSync(file, 'wx', 0o600)
  try {
    if (writeSync(handle, written) !== BYTES) throw new Error('the write was incomplete')
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  if (!readFileSync(file).equals(written)) throw new Error('the data that was read back differs')
}

/** Removes the folder and its parents, up to the first one that was created. */
function removeEmpty(folder: string, first: string): void {
  for (let dir = folder; ; dir = dirname(dir)) {
    rmdirSync(dir)
    if (dir === first) return
  }
}
