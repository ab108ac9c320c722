import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { openStore } from '../app/open-store.ts'
import { loadSettings } from '../config/load-settings.ts'
import { silentLogger } from '../lib/logger.ts'
import { backupCommand } from './backup.ts'

const MB = 1024 * 1024
let dir = ''
beforeEach(() => {
  dir = temporaryFolder()
  mkdirSync(join(dir, 'disk'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', join(dir, 'disk')])
})
afterEach(() => {
  vi.restoreAllMocks()
  execFileSync('umount', ['-l', join(dir, 'disk')])
  discard(dir)
})

// Only root can mount a small disk.
it.skipIf(process.getuid?.() !== 0).each([
  ['a file', 2, 0],
  ['the database', 0, 2]
])('names the folder and leaves nothing there if %s does not fit', async (_what, fileMb, databaseMb) => {
  vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  const settings = loadSettings({ env: { DATA_DIR: join(dir, 'data') } })
  mkdirSync(join(dir, 'data/audit'), { recursive: true })
  writeFileSync(join(dir, 'data/audit/a.jsonl'), `${'x'.repeat(fileMb * MB)}\n`)
  const store = await openStore(settings, silentLogger)
  await store.keyValues.set('space', 'key', 'x'.repeat(databaseMb * MB))
  await store.close()
  const backup = (to: string) =>
    backupCommand.run(settings, { words: [], rest: [], flags: { to }, isNamed: () => false })
  const to = join(dir, 'disk/backup')
  await expect(backup(to)).rejects.toThrow(`There is not enough space for the backup in ${to}`)
  expect(readdirSync(join(dir, 'disk'))).toEqual([])
  // A folder that was there before stays.
  await expect(backup(join(dir, 'disk'))).rejects.toThrow('not enough space')
  expect(readdirSync(join(dir, 'disk'))).toEqual([])
})
