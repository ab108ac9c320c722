/**
 * The data folder's copy of the deployment's id. Containers carry this id: a store that was emptied must get it back, or nobody
 * would find them again. There is one file per store, because an empty store at another address is another deployment.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError, messageOf } from '../lib/errors.ts'
import { makeFolder } from '../lib/files/make-folder.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** `store` identifies the store: host, port, database and name, or the embedded one. */
export function deploymentFile(dataDir: string, store: string): string {
  const name = store === 'embedded' ? store : createHash('sha256').update(store).digest('hex').slice(0, 16)
  return join(dataDir, 'deployments', name)
}

/** Returns undefined if no id is stored, or none that can be read. */
export function readDeploymentId(file: string): string | undefined {
  try {
    const id = readFileSync(file, 'utf8').trim()
    return UUID.test(id) ? id : undefined
  } catch {
    return undefined
  }
}

/** The ids of all deployments that have used this folder. */
export function rememberedIds(dataDir: string): Set<string> {
  const folder = join(dataDir, 'deployments')
  const names = existsSync(folder) ? readdirSync(folder) : []
  return new Set(names.flatMap((name) => readDeploymentId(join(folder, name)) ?? []))
}

export function rememberDeploymentId(file: string, id: string): void {
  if (readDeploymentId(file) === id) return
  const draft = `${file}.${randomUUID()}`
  try {
    makeFolder(dirname(file))
    writeFileSync(draft, `${id}\n`, { mode: 0o600, flush: true })
    renameSync(draft, file)
  } catch (error) {
    const message = `${file} can't be written (${messageOf(error)}): check DATA_DIR and its permissions.`
    throw new AppError('unavailable', 'store_unavailable', message, { cause: error })
  } finally {
    rmSync(draft, { force: true })
  }
}
