import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { lockDataDir } from './data-dir-lock.ts'
import { openEmbeddedStore } from './open-embedded-store.ts'

describe('lockDataDir', () => {
  let root = ''
  let dataDir = ''
  beforeEach(() => {
    root = temporaryFolder()
    dataDir = join(root, 'data')
  })
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    rmSync(root, { recursive: true })
  })

  const lockInChild = async () => {
    const code = `
      import { lockDataDir } from ${JSON.stringify(join(import.meta.dirname, 'data-dir-lock.ts'))}
      lockDataDir(${JSON.stringify(dataDir)})
      globalThis.gc()
      process.stdout.write('locked')
      process.stdin.resume().on('end', () => process.exit())
      setInterval(() => globalThis.gc(), 50)`
    const args = ['--expose-gc', '--input-type=module-typescript', '--eval', code]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    children.push(child)
    await once(child.stdout, 'data')
    return child
  }

  it('refuses a second lock in the same process until the first is released, twice', () => {
    for (let round = 0; round < 2; round++) {
      const lock = lockDataDir(dataDir)
      expect(() => lockDataDir(dataDir)).toThrow(expect.objectContaining({ kind: 'conflict', code: 'data_dir_in_use' }))
      expect(() => lockDataDir(dataDir)).toThrow(`process ${process.pid}`)
      expect(statSync(join(dataDir, 'lock.db')).mode & 0o077).toBe(0)
      lock.release()
      lock.release()
    }
  })

  it('is refused while another process lives, names it, and is free after its kill -9', async () => {
    const child = await lockInChild()
    expect(() => lockDataDir(dataDir)).toThrow(
      expect.objectContaining({ code: 'data_dir_in_use', details: expect.objectContaining({ pid: child.pid }) })
    )
    child.kill('SIGKILL')
    await once(child, 'exit')
    lockDataDir(dataDir).release()
  })

  it('does not stand in the way of the store', async () => {
    const lock = lockDataDir(dataDir)
    const store = await openEmbeddedStore({ dataDir, logger: silentLogger })
    expect(await store.sessions.acquire('s', 'h', 1000)).toMatchObject({ granted: true })
    await store.close()
    lock.release()
  })

  it('survives a sidecar full of nonsense', () => {
    const lock = lockDataDir(dataDir)
    writeFileSync(join(dataDir, 'lock.json'), '{"pid":')
    expect(() => lockDataDir(dataDir)).toThrow(expect.objectContaining({ code: 'data_dir_in_use' }))
    lock.release()
  })

  it('says so when the folder cannot be made', () => {
    writeFileSync(join(root, 'file'), '')
    expect(() => lockDataDir(join(root, 'file', 'x'))).toThrow(expect.objectContaining({ code: 'store_unavailable' }))
  })
})
