/** An installation with all kinds of data, and what can be compared after it was moved. */
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Settings } from '../../config/settings.ts'
import { silentLogger } from '../../lib/logger.ts'
import { put } from '../../storage/checkpoints/checkpoint-files.fixture.ts'
import { openBucket, openCheckpoints } from '../open-checkpoints.ts'
import { openStore } from '../open-store.ts'

/** Opens an installation as `serve` does. */
export async function opened<T>(
  of: Settings,
  job: (parts: {
    store: Awaited<ReturnType<typeof openStore>>
    checkpoints: ReturnType<typeof openCheckpoints>
  }) => Promise<T>
): Promise<T> {
  const store = await openStore(of, silentLogger)
  const bucket = await openBucket(of, silentLogger)
  try {
    await bucket?.claim(store, false)
    return await job({ store, checkpoints: openCheckpoints(of, store, bucket, silentLogger) })
  } finally {
    bucket?.objects.close()
    await store.close()
  }
}

const IDS = ['s-1', 'with/odd {chars} ü', 's-3']
const BIG = randomBytes(3_000_000)
const IMAGE = randomBytes(5000)

export async function fill(of: Settings): Promise<void> {
  await opened(of, async ({ store, checkpoints }) => {
    for (const id of IDS) {
      const taken = await store.sessions.acquire(id, 'someone', 60_000)
      if (!taken.granted) throw new Error('held')
      const events = Array.from({ length: 450 }, (_, at) => ({ type: 'user:message', data: { at }, key: `k${at}` }))
      await store.events.append(id, [...events, { type: 'tool:result', data: { text: 'x'.repeat(100_000) } }])
      const checkpoint = await checkpoints.open(id, taken.record.epoch)
      await put(checkpoint, { 'a.txt': id, 'd/b.txt': 'old' })
      const { hash, size } = await checkpoint.addBlob(BIG)
      const big = { path: 'big', type: 'file', mode: 0o755, mtimeMs: 5, size, hash } as const
      const before = checkpoint.entries.get('a.txt') ?? null
      const change = { path: 'a.txt', before, after: null }
      const set = {
        id: 'open-1',
        kind: 'open',
        at: 7,
        about: { kind: 'turn', turnId: 't' },
        changes: [change]
      } as const
      await checkpoint.commit({ put: [big], deleted: ['d/b.txt'], keep: [JSON.parse(JSON.stringify(set))] })
      await checkpoint.close()
      await checkpoints.putContent(id, IMAGE)
      await store.sessions.release(id, taken.record.epoch)
    }
    await store.events.append('no-record', [{ type: 'x', data: {} }])
    await checkpoints.putContent('no-record', IMAGE)
    await store.keyValues.set('owners', 's-1', { hash: 'h', n: [1, null, 'ü'] })
  })
}

export async function contentOf(of: Settings) {
  return opened(of, async ({ store, checkpoints }) => {
    const found: unknown[] = [await store.keyValues.list('owners')]
    for (const id of [...IDS, 'no-record']) {
      const record = await store.sessions.get(id)
      const events = [
        ...(await store.events.read(id, { limit: 400 })),
        ...(await store.events.read(id, { after: 400 }))
      ]
      const image = await checkpoints.getContent(id, createHash('sha256').update(IMAGE).digest('hex'))
      found.push(id, events, image?.equals(IMAGE), await store.events.bytes([id]))
      if (id === 'no-record') continue
      found.push(record?.epoch, record?.createdAt, record?.activeAt)
      const checkpoint = await checkpoints.open(id, record?.epoch ?? 0)
      const big = checkpoint.entries.get('big')
      const chunks: Uint8Array[] = []
      for await (const chunk of checkpoint.read(big?.type === 'file' ? big.hash : '', 65_536)) chunks.push(chunk)
      found.push([...checkpoint.entries].toSorted(), [...checkpoint.changeSets], Buffer.concat(chunks).equals(BIG))
      await checkpoint.close()
      const again = { type: 'user:message', data: {}, key: 'k7' }
      await expect(store.events.append(id, [again])).rejects.toMatchObject({ code: 'event_exists' })
    }
    return found
  })
}

/** All files with their hashes, except the lock, which is taken; of the sessions' files and folders also the times. */
export function picture(dir: string): string[] {
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' })
  return names
    .filter((name) => !/lock\.|-(shm|wal)$/.test(name))
    .map((name) => {
      const stat = statSync(join(dir, name))
      const hash = stat.isFile()
        ? createHash('sha256')
            .update(readFileSync(join(dir, name)))
            .digest('hex')
        : ''
      return `${name} ${hash} ${name.startsWith('checkpoints') ? stat.mtimeMs : ''}`
    })
    .toSorted()
}
