import { randomBytes, randomUUID } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { messageOf } from '../../lib/errors.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'

const BYTES = 64 * 1024

/** Really writes to the data folder, reads back what was written, and leaves everything as it was: also no folder that it made. */
export function describeDataDir(folder: string): string {
  let made: string | undefined
  const file = join(folder, `.doctor-${randomUUID()}`)
  try {
    made = makeFolder(folder)
    writeAndRead(file)
    return `${folder} can be written${made === undefined ? '' : '; the first start makes it'}`
  } catch (error) {
    const advice = 'check DATA_DIR, its permissions and the free space of its disk'
    throw new Error(`The data folder ${folder} can't be written (${messageOf(error)}): ${advice}.`)
  } finally {
    tidy(() => rmSync(file, { force: true }))
    if (made !== undefined) tidy(() => removeEmpty(folder, made ?? folder))
  }
}

/** What can't be undone must not hide what was found. */
function tidy(job: () => void): void {
  try {
    job()
  } catch {}
}

function writeAndRead(file: string): void {
  const written = randomBytes(BYTES)
  const handle = openSync(file, 'wx', 0o600)
  try {
    if (writeSync(handle, written) !== BYTES) throw new Error('only a part was written')
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  if (!readFileSync(file).equals(written)) throw new Error('what was read back is not what was written')
}

/** From the folder up to the first one that was made. */
function removeEmpty(folder: string, first: string): void {
  for (let dir = folder; ; dir = dirname(dir)) {
    rmdirSync(dir)
    if (dir === first) return
  }
}
