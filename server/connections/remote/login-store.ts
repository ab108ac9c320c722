/** Where logins are kept, as texts by name: in files of this machine, or in the store that several instances share. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../lib/errors.ts'
import { withFileLock } from '../../lib/files/file-lock.ts'
import { makeFolder } from '../../lib/files/make-folder.ts'

export interface LoginStore {
  /** Whether there is a login with this name. One that another instance has stored is known a few seconds later. */
  has(name: string): boolean
  read(name: string): Promise<string | undefined>
  write(name: string, text: string): Promise<void>
  /** Returns false if there was none. */
  remove(name: string): Promise<boolean>
  /** Runs a job while no other process runs one for this name. */
  locked<T>(name: string, job: () => Promise<T>): Promise<T>
}

/** An older lock was left by a process that died during a refresh. */
export const STALE_LOCK_MS = 30_000

/** One file for each login, which only the user of this process can read. Several processes can share the folder. */
export function fileLogins(dir: string): LoginStore {
  const fileOf = (name: string) => join(dir, `${name}.json`)
  return {
    has: (name) => existsSync(fileOf(name)),
    async read(name) {
      const file = fileOf(name)
      if (!existsSync(file)) return undefined
      if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) {
        const message = `Other users of this machine can read the login in ${file}. Run chmod 600 on it first.`
        throw new AppError('forbidden', 'credentials_exposed', message, { details: { permanent: true } })
      }
      return readFileSync(file, 'utf8')
    },
    async write(name, text) {
      makeFolder(dir)
      const fresh = `${fileOf(name)}.${randomBytes(6).toString('hex')}`
      writeFileSync(fresh, text, { mode: 0o600 })
      renameSync(fresh, fileOf(name))
    },
    async remove(name) {
      const isThere = existsSync(fileOf(name))
      rmSync(fileOf(name), { force: true })
      return isThere
    },
    locked: (name, job) => withFileLock(`${fileOf(name)}.lock`, STALE_LOCK_MS, job)
  }
}
