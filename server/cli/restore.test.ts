import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { openStore } from '../app/open-store.ts'
import { loadSettings } from '../config/load-settings.ts'
import { silentLogger } from '../lib/logger.ts'
import { restoreCommand } from './restore.ts'

const SECRET = 'what only root may read'
let dir = ''

beforeEach(() => {
  dir = temporaryFolder()
  writeFileSync(join(dir, 'outside'), SECRET)
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(dir, { recursive: true, force: true })
})

/** A backup with these files; `place` puts something else where a file should be. */
function backupOf(paths: string[], place?: (file: string) => void): string {
  const from = join(dir, 'backup')
  const files = paths.map((path) => {
    mkdirSync(dirname(join(from, path)), { recursive: true })
    place ? place(join(from, path)) : writeFileSync(join(from, path), SECRET)
    return { path, size: SECRET.length, sha256: createHash('sha256').update(SECRET).digest('hex') }
  })
  const manifest = { version: 1, madeAt: 'now', program: '0', store: 'embedded', files }
  writeFileSync(join(from, 'manifest.json'), JSON.stringify(manifest))
  return from
}

async function restore(from: string, onSaid: (text: string) => void = () => {}): Promise<string> {
  let said = ''
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += text
    onSaid(String(text))
    return true
  })
  const settings = loadSettings({ env: { DATA_DIR: join(dir, 'data') } })
  await restoreCommand.run(settings, { words: [from], rest: [], flags: {}, isNamed: () => false })
  return said
}

describe('restore', () => {
  it('restores a backup, and reports that it includes logins and accepted entries', async () => {
    const said = await restore(
      backupOf(['store.db', 'logins/a.json', 'logins/b.json', 'grants.json', 'config/mcp.json'])
    )
    expect(said).toMatch(/2 OAuth logins.*accepted entries \(grants.json\).*restored-config/s)
    expect(readFileSync(join(dir, 'data/logins/b.json'), 'utf8')).toBe(SECRET)
  })

  it('is not served until it is complete, and can be run again after it was interrupted', async () => {
    const from = backupOf(['audit/a', 'audit/b', 'logins/a.json'])
    // The second file changes after it was checked.
    const spoil = (text: string) => text.startsWith('Restoring') && writeFileSync(join(from, 'audit/b'), 'other')
    await expect(restore(from, spoil)).rejects.toThrow('audit/b has changed')
    expect(existsSync(join(dir, 'data/audit/a'))).toBe(true)
    const settings = loadSettings({ env: { DATA_DIR: join(dir, 'data') } })
    await expect(openStore(settings, silentLogger)).rejects.toThrow(/incomplete.*restore" \(or "migrate"\) again/)
    writeFileSync(join(from, 'audit/b'), SECRET)
    await restore(from)
    expect(readFileSync(join(dir, 'data/audit/b'), 'utf8')).toBe(SECRET)
    await (await openStore(settings, silentLogger)).close()
    await expect(restore(from)).rejects.toThrow('is not empty')
  })

  // Checked: if links are followed, the outside file gets into the data folder, and the pipe blocks for ever.
  it.each([
    ['a link', (file: string) => symlinkSync(join(dir, 'outside'), file)],
    ['a pipe', (file: string) => execFileSync('mkfifo', [file])],
    [
      'a file in a folder that is a link',
      (file: string) => {
        rmSync(dirname(file), { recursive: true })
        mkdirSync(join(dir, 'elsewhere'))
        writeFileSync(join(dir, 'elsewhere', 'a'), SECRET)
        symlinkSync(join(dir, 'elsewhere'), dirname(file))
      }
    ]
  ])('accepts no file that is %s', async (_what, place) => {
    await expect(restore(backupOf(['audit/a'], place))).rejects.toThrow(/audit\/a: it is (a link|not a regular file)/)
    expect(existsSync(join(dir, 'data'))).toBe(false)
  })

  // Checked: if any path inside is accepted, the lock is in the data folder.
  it.each(['lock.json', 'other', 'audit/a/b', 'config/..', 'checkpoints/x/y', 'server-logs/a'])(
    'accepts nothing that no backup contains: %s',
    async (path) => {
      const from = backupOf(['store.db'])
      const manifest = JSON.parse(readFileSync(join(from, 'manifest.json'), 'utf8'))
      manifest.files[0].path = path
      writeFileSync(join(from, 'manifest.json'), JSON.stringify(manifest))
      await expect(restore(from)).rejects.toThrow('which no backup contains')
    }
  )
})
