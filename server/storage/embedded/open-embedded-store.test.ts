import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { silentLogger } from '../../lib/logger.ts'
import { describeEventLog } from '../event-log.contract.ts'
import { describeFileHeads } from '../file-heads.contract.ts'
import { describeKeyValueStore } from '../key-value-store.contract.ts'
import { describeSessionStore, type StoreUnderTest } from '../session-store.contract.ts'
import { openEmbeddedStore } from './open-embedded-store.ts'

const logger = silentLogger

async function openTwo(): Promise<StoreUnderTest> {
  const dataDir = temporaryFolder()
  const [first, second] = await Promise.all([
    openEmbeddedStore({ dataDir, logger }),
    openEmbeddedStore({ dataDir, logger })
  ])
  const empty = async () => {
    const db = new DatabaseSync(join(dataDir, 'store.db'), { timeout: 1000 })
    db.exec(`DELETE FROM sessions; DELETE FROM events; DELETE FROM instances; DELETE FROM meta`)
    db.close()
  }
  const dispose = async () => {
    await first.close()
    await second.close()
    rmSync(dataDir, { recursive: true })
  }
  return { first, second, empty, dispose }
}

describeSessionStore('embedded', openTwo)
describeEventLog('embedded', openTwo)
describeKeyValueStore('embedded', openTwo)
describeFileHeads('embedded', openTwo)

describe('embedded store on disk', () => {
  let root = ''
  let dataDir = ''
  beforeEach(() => {
    root = temporaryFolder()
    dataDir = join(root, 'nested', 'data')
  })
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    rmSync(root, { recursive: true })
  })

  const run = (code: string) => {
    const child = spawn(process.execPath, ['--input-type=module-typescript', '--eval', code], {
      stdio: ['pipe', 'pipe', 'inherit']
    })
    children.push(child)
    let out = ''
    child.stdout.on('data', (chunk) => {
      out += chunk
    })
    return { child, output: () => out }
  }
  const opening = () => `
    import { openEmbeddedStore } from ${JSON.stringify(join(import.meta.dirname, 'open-embedded-store.ts'))}
    import { silentLogger as logger } from ${JSON.stringify(join(import.meta.dirname, '../../lib/logger.ts'))}
    const store = await openEmbeddedStore({ dataDir: ${JSON.stringify(dataDir)}, logger })
  `

  it('keeps everything over a restart, in files that only the owner may read', async () => {
    const store = await openEmbeddedStore({ dataDir, logger })
    const acquired = await store.sessions.acquire('s', 'h', 60_000)
    const deployment = await store.sessions.deploymentId()
    await store.events.append('s', [{ type: 't', data: { n: 1 } }])
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
    for (const name of ['store.db', 'store.db-wal', 'store.db-shm']) {
      expect(statSync(join(dataDir, name)).mode & 0o077).toBe(0)
    }
    await store.close()
    await store.close()
    const again = await openEmbeddedStore({ dataDir, logger })
    expect(await again.sessions.get('s')).toEqual(acquired.granted && acquired.record)
    expect(await again.sessions.deploymentId()).toBe(deployment)
    expect(await again.events.lastSeq('s')).toBe(1)
    await again.close()
  })

  const bytesOnDisk = () =>
    readdirSync(dataDir)
      .filter((name) => name.startsWith('store.db'))
      .map((name) => readFileSync(join(dataDir, name), 'latin1'))
      .join('')

  it('keeps no word of a deleted session, neither in the database nor in its log', async () => {
    const store = await openEmbeddedStore({ dataDir, logger })
    const text = (i: number) => `topsecret-${i} ${'x'.repeat(2000)}`
    for (let i = 0; i < 50; i++) await store.events.append('s', [{ type: 'user:message', data: { text: text(i) } }])
    await store.keyValues.set('sessions', 's', { title: 'topsecret title' })
    await store.events.append('other', [{ type: 'user:message', data: { text: 'stays' } }])
    expect(bytesOnDisk()).toContain('topsecret')
    await store.events.remove('s')
    await store.keyValues.remove('sessions', 's')
    await expect.poll(bytesOnDisk, { interval: 20 }).not.toContain('topsecret')
    expect(bytesOnDisk()).toContain('stays')
    await store.close()
  })

  it('has every acknowledged event after a kill -9 of the writer', async () => {
    // The writer waits until its word is out: when the pipe is full, Node would keep the words in memory and write on.
    const { child, output } = run(`${opening()}
      process.stdin.resume().on('end', () => process.exit())
      for (let i = 0; ; i++) {
        const [stored] = await store.events.append('s', [{ type: 't', data: { i } }])
        await new Promise((written) => process.stdout.write(stored.seq + '\\n', written))
        await new Promise(setImmediate)
      }`)
    await expect.poll(() => output().split('\n').length, { interval: 5 }).toBeGreaterThan(200)
    child.kill('SIGKILL')
    await once(child, 'close')
    const acknowledged = Number(output().trimEnd().split('\n').at(-1))
    const store = await openEmbeddedStore({ dataDir, logger })
    const last = await store.events.lastSeq('s')
    expect(last).toBeGreaterThanOrEqual(acknowledged)
    expect(last).toBeLessThanOrEqual(acknowledged + 1)
    await store.close()
  })

  it('lets processes that start together create, migrate and use one database', async () => {
    const code = `${opening()}
      for (let i = 0; i < 50; i++) await store.events.append('s', [{ type: 't', data: {} }])
      console.log(await store.sessions.deploymentId())
      await store.close()`
    const runs = Array.from({ length: 4 }, () => run(code))
    const codes = await Promise.all(runs.map(async ({ child }) => (await once(child, 'close'))[0]))
    expect(codes).toEqual([0, 0, 0, 0])
    expect(new Set(runs.map(({ output }) => output())).size).toBe(1)
    const store = await openEmbeddedStore({ dataDir, logger })
    expect(await store.events.lastSeq('s')).toBe(200)
    await store.close()
  })

  it('says so when the database is of a newer program, and leaves it alone', async () => {
    await (await openEmbeddedStore({ dataDir, logger })).close()
    const db = new DatabaseSync(join(dataDir, 'store.db'))
    db.exec('PRAGMA user_version = 99')
    db.close()
    await expect(openEmbeddedStore({ dataDir, logger })).rejects.toMatchObject({ code: 'store_too_new' })
    const after = new DatabaseSync(join(dataDir, 'store.db'))
    expect(after.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: 99 })
    after.close()
  })

  it('says so when the database is damaged', async () => {
    const store = await openEmbeddedStore({ dataDir, logger })
    for (let i = 0; i < 50; i++) await store.events.append('s', [{ type: 't', data: { text: 'x'.repeat(2000) } }])
    await store.close()
    const file = join(dataDir, 'store.db')
    const bytes = readFileSync(file)
    writeFileSync(file, 'this is no database '.repeat(500))
    await expect(openEmbeddedStore({ dataDir, logger })).rejects.toMatchObject({ code: 'store_corrupt' })
    writeFileSync(file, bytes)
    truncateSync(file, 8192)
    const opening = openEmbeddedStore({ dataDir, logger }).then((cut) => cut.events.read('s').finally(cut.close))
    await expect(opening).rejects.toMatchObject({ kind: 'unavailable', code: 'store_corrupt' })
  })

  it('says so when the folder cannot be written', async () => {
    writeFileSync(join(root, 'file'), '')
    const opening = openEmbeddedStore({ dataDir: join(root, 'file', 'data'), logger })
    await expect(opening).rejects.toMatchObject({ kind: 'unavailable', code: 'store_unavailable' })
  })

  it('answers unavailable when another process holds the database, and after close', async () => {
    const store = await openEmbeddedStore({ dataDir, logger })
    const other = new DatabaseSync(join(dataDir, 'store.db'))
    other.exec('BEGIN IMMEDIATE')
    const busy = store.sessions.acquire('s', 'h', 1000)
    await expect(busy).rejects.toMatchObject({ kind: 'unavailable', code: 'store_unavailable' })
    other.exec('ROLLBACK')
    other.close()
    expect(await store.sessions.acquire('s', 'h', 1000)).toMatchObject({ granted: true })
    await store.close()
    await expect(store.sessions.get('s')).rejects.toMatchObject({ code: 'store_unavailable' })
  })
})
