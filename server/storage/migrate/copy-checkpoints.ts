import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../lib/errors.ts'
import type { BackupFolder } from '../backup/backup-folder.ts'
import { CONTENT_NAME } from '../checkpoints/content-files.ts'
import { listFiles } from '../checkpoints/session-folder.ts'

const ATTEMPTS = 10

/**
 * Copies the files of every session while servers write them. A folder's copy is complete if nothing in the folder changed
 * meanwhile; otherwise it is copied again. Returns the folders that kept changing.
 */
export async function copyCheckpoints(
  dir: string,
  backup: BackupFolder,
  progress: (done: number, all: number) => void
): Promise<string[]> {
  const names = (await readdir(dir).catch(() => [])).filter((name) => /^[0-9a-f]{64}$/.test(name))
  const restless: string[] = []
  for (const [at, name] of names.entries()) {
    if (!(await copyFolder(join(dir, name), `checkpoints/${name}`, backup))) restless.push(name)
    progress(at + 1, names.length)
  }
  return restless
}

async function copyFolder(from: string, to: string, backup: BackupFolder): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await fileSizes(from)
    const copied: string[] = []
    try {
      for (const [name, size] of before) {
        copied.push(`${to}/${name}`)
        await backup.copy(join(from, name), `${to}/${name}`, size)
      }
      if (same(before, await fileSizes(from))) return true
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error // the file was compacted or removed meanwhile
    }
    await backup.drop(copied)
  }
  return false
}

/** Name and size of every file that counts. */
async function fileSizes(folder: string): Promise<Map<string, number>> {
  const files = (await listFiles(folder)).filter(({ kind }) => kind !== 'tmp').map(({ name }) => name)
  const contents = (await readdir(folder).catch(() => [])).filter((name) => CONTENT_NAME.test(name))
  const names = [...files, ...contents]
  const sizes = names.toSorted().map(async (name) => {
    const size = await stat(join(folder, name)).then(
      (info) => info.size,
      () => -1
    )
    return [name, size] as const
  })
  return new Map((await Promise.all(sizes)).filter(([, size]) => size >= 0))
}

function same(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  return a.size === b.size && [...a].every(([name, size]) => b.get(name) === size)
}
