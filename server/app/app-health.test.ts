import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { recordingLogger } from '../../tests/support/recording-logger.ts'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { loadSettings } from '../config/load-settings.ts'
import { silentLogger } from '../lib/logger.ts'
import { openCheckpointStore } from '../storage/checkpoints/checkpoint-files.ts'
import { openEmbeddedStore } from '../storage/embedded/open-embedded-store.ts'
import type { Store } from '../storage/store.ts'
import { openAuditLog } from './app-audit.ts'
import { type Examined, openReadiness } from './app-health.ts'

let dataDir: string
let store: Store
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  dataDir = temporaryFolder()
  store = await openEmbeddedStore({ dataDir, logger: silentLogger })
})
afterEach(async () => {
  vi.useRealTimers()
  await store.close()
  discard(dataDir)
})

/** All parts work, except for what the test does to the folders. The clock stands still unless a test moves it. */
function open() {
  const auditLog = openAuditLog(loadSettings({ env: { DATA_DIR: dataDir } }))
  const others = {
    engine: { status: async () => ({ version: '1' }), hasImage: async () => true },
    sessions: { isSwept: true },
    progress: { current: { message: '' } }
  }
  const parts = { ...others, store, auditLog, dataDir, minFreeMb: 0 } as unknown as Examined
  const readiness = openReadiness(parts, recordingLogger([]))
  const look = async (afterMs = 3000) => {
    vi.setSystemTime(Date.now() + afterMs)
    return readiness.look()
  }
  return { audit: auditLog.audit, look }
}

/** Replaces a folder by a file, so that nothing can be written there; the returned function undoes it. */
function block(name: string): () => void {
  const folder = join(dataDir, name)
  renameSync(folder, `${folder}.away`)
  writeFileSync(folder, '')
  return () => {
    rmSync(folder)
    renameSync(`${folder}.away`, folder)
  }
}

async function openSaves() {
  const files = openCheckpointStore({ dir: join(dataDir, 'checkpoints'), maxSessionBytes: 1000, logger: silentLogger })
  const checkpoint = await files.open('a-session', 1)
  let at = 0
  return {
    close: () => checkpoint.close(),
    async save(content = `content ${at++}`) {
      const { hash, size } = await checkpoint.addBlob(Buffer.from(content))
      const entry = { path: 'file', type: 'file', mode: 0o644, mtimeMs: 1, hash, size } as const
      await checkpoint.commit({ put: [entry], deleted: [] })
    },
    saveNonsense: () => checkpoint.commit({ put: [{} as never], deleted: [] })
  }
}

// Checked: if nothing is written there, it stays ready.
it('is not ready while the files of sessions can not be saved, and is ready again as soon as they can', async () => {
  const { look } = open()
  const session = await openSaves()
  await session.save()
  expect(await look()).toMatchObject({ ok: true, parts: { checkpoints: { detail: 'saved' } } })
  const unblock = block('checkpoints')
  expect(await look()).toMatchObject({ ok: false, parts: { checkpoints: { ok: false }, disk: { ok: true } } })
  expect((await look(600_000)).parts.checkpoints).toMatchObject({
    ok: false,
    detail: expect.stringMatching(/checkpoints can't be written .*: free space there/)
  })
  unblock()
  expect((await look()).ok).toBe(true)
  await session.close()
})

// Seen to fail while the error of one session counted for the instance.
it('stays ready while the disk fails for one session only', async () => {
  const { look } = open()
  const session = await openSaves()
  await session.save()
  const [folder = ''] = readdirSync(join(dataDir, 'checkpoints')).filter((name) => !name.startsWith('.'))
  const unblock = block(join('checkpoints', folder))
  await expect(session.save()).rejects.toMatchObject({ code: 'checkpoint_failed' })
  expect((await look()).parts.checkpoints).toEqual({ ok: true, detail: 'saved' })
  unblock()
  await session.close()
})

// Checked: if every error counts, the instance is not ready.
it('stays ready when one session saves too much, or something invalid', async () => {
  const { look } = open()
  const session = await openSaves()
  await expect(session.saveNonsense()).rejects.toMatchObject({ code: 'invalid_entry' })
  await expect(session.save('x'.repeat(5000))).rejects.toMatchObject({ code: 'checkpoint_full' })
  expect((await look()).ok).toBe(true)
  await session.close()
})

// Checked: if the audit log is not checked, it stays ready.
it('is not ready while the audit log can not be written, until its folder is writable again', async () => {
  writeFileSync(join(dataDir, 'audit'), 'a file where the folder should be')
  const { audit, look } = open()
  const call = () =>
    audit.begin({ caller: { owner: 'local', door: 'stdio' }, server: 's', tool: 't', args: {} })({ outcome: 'ok' })
  expect(call).toThrow(/Can't write the audit log/)
  expect(await look()).toMatchObject({ ok: false, parts: { audit: { ok: false }, disk: { ok: true } } })
  rmSync(join(dataDir, 'audit'))
  expect((await look()).parts.audit).toMatchObject({
    ok: true,
    detail: expect.stringContaining('can be written again')
  })
  call()
  expect(await look()).toMatchObject({ ok: true, parts: { audit: { detail: 'written' } } })
  await audit.close()
})
