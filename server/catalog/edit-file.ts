import { randomUUID } from 'node:crypto'
import { readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AppError, hasCode, isAppError } from '../lib/errors.ts'
import { withFileLock } from '../lib/files/file-lock.ts'
import { makeFolder } from '../lib/files/make-folder.ts'

const STALE_LOCK_MS = 10_000

/**
 * Replaces a file's text with the result of `edit` in one step; `edit` gets undefined if the file does not exist. Only one process
 * at a time changes the file, because otherwise the second change would undo the first. If the path is a link, the link stays and
 * its target is changed.
 */
export async function editFile(file: string, edit: (before: string | undefined) => string): Promise<void> {
  try {
    await editNow(file, edit)
  } catch (error) {
    if (isAppError(error) || !(error instanceof Error && 'syscall' in error)) throw error
    const advice = hasCode(error, 'ENOSPC', 'EDQUOT')
      ? 'the disk is full; free space there'
      : 'check its permissions, and those of its folder'
    const message = `${file} can't be changed (${error.message}): ${advice}.`
    throw new AppError('unavailable', 'file_unwritable', message, { cause: error })
  }
}

async function editNow(file: string, edit: (before: string | undefined) => string): Promise<void> {
  makeFolder(dirname(file))
  const target = (await unlessMissing(realpath(file))) ?? file
  await withFileLock(`${target}.lock`, STALE_LOCK_MS, async () => {
    const text = edit(await unlessMissing(readFile(target, 'utf8')))
    const { mode = 0o600 } = (await unlessMissing(stat(target))) ?? {}
    const draft = `${target}.${randomUUID()}.new`
    try {
      await writeFile(draft, text, { mode: mode & 0o777 })
      await rename(draft, target)
    } finally {
      await rm(draft, { force: true })
    }
  })
}

async function unlessMissing<T>(job: Promise<T>): Promise<T | undefined> {
  try {
    return await job
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
