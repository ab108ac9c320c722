import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { testRedisEnv } from '../../tests/support/test-redis.ts'
import { openStore } from '../app/open-store.ts'
import { loadSettings } from '../config/load-settings.ts'
import { silentLogger } from '../lib/logger.ts'
import { backupCommand } from './backup.ts'
import type { Command } from './command.ts'
import { restoreCommand } from './restore.ts'

let dir = ''
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => {
  vi.restoreAllMocks()
  discard(dir)
})

async function run(
  { run }: Command,
  env: Record<string, string>,
  to: string,
  onSaid: (text: string) => void = () => {}
) {
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    onSaid(String(text))
    return true
  })
  return run(loadSettings({ env }), { words: [to], rest: [], flags: { to }, isNamed: () => false })
}

it('is not served until it is complete, and can be run again after it was interrupted', async () => {
  const from = { ...(await testRedisEnv()), DATA_DIR: join(dir, 'from') }
  mkdirSync(join(dir, 'from/audit'), { recursive: true })
  writeFileSync(join(dir, 'from/audit/a.jsonl'), '{}\n')
  const original = await openStore(loadSettings({ env: from }), silentLogger)
  for (const text of ['one', 'two']) await original.events.append('s', [{ type: 'x', data: { text } }])
  await original.close()
  const backup = join(dir, 'backup')
  await run(backupCommand, from, backup)

  const to = { ...(await testRedisEnv()), DATA_DIR: join(dir, 'to') }
  const keys = join(backup, 'redis.jsonl')
  const whole = readFileSync(keys)
  // The last line is damaged after it was checked.
  const spoil = (text: string) => text.startsWith('Restoring') && appendFileSync(keys, 'no json')
  await expect(run(restoreCommand, to, backup, spoil)).rejects.toThrow('JSON')
  const settings = loadSettings({ env: to })
  await expect(openStore(settings, silentLogger)).rejects.toThrow(/incomplete.*restore" \(or "migrate"\) again/)

  writeFileSync(keys, whole)
  expect(await run(restoreCommand, to, backup)).toBe(0)
  expect(existsSync(join(dir, 'to/audit/a.jsonl'))).toBe(true)
  const restored = await openStore(settings, silentLogger)
  expect((await restored.events.read('s')).map(({ data }) => data.text)).toEqual(['one', 'two'])
  await restored.close()
  await expect(run(restoreCommand, { ...to, DATA_DIR: join(dir, 'other') }, backup)).rejects.toThrow('already has data')
})
