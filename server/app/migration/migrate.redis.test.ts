import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { testRedisEnv } from '../../../tests/support/test-redis.ts'
import { loadSettings } from '../../config/load-settings.ts'
import type { Settings } from '../../config/settings.ts'
import { silentLogger } from '../../lib/logger.ts'
import { fileEntry, put } from '../../storage/checkpoints/checkpoint-files.fixture.ts'
import { FakeObjectService } from '../../storage/objects/fake-object-service.ts'
import { openBucket, openCheckpoints } from '../open-checkpoints.ts'
import { openStore } from '../open-store.ts'
import { migrate } from './migrate.ts'

let service: FakeObjectService
let dirs: string[]
let said: string[]

beforeEach(async () => {
  service = await new FakeObjectService().start()
  dirs = []
  said = []
})
afterEach(async () => {
  await service.stop()
  for (const dir of dirs) discard(dir)
})

function settings(more: Record<string, string> = {}): Settings {
  const dir = temporaryFolder()
  dirs.push(dir)
  return loadSettings({ env: { DATA_DIR: join(dir, 'data'), ...more } })
}

const inBucket = () => ({
  CHECKPOINT_STORE: `s3://tests/${randomUUID()}`,
  S3_ENDPOINT: service.endpoint,
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test'
})

const move = (from: Settings, to: Settings, isDryRun = false) =>
  migrate({ from, to, isDryRun, say: (line) => said.push(line), logger: silentLogger })

/** Opens an installation as `serve` does. */
async function opened<T>(
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

async function fill(of: Settings): Promise<void> {
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

async function contentOf(of: Settings) {
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
function picture(dir: string): string[] {
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

it('moves from a folder to Redis and a bucket, and back, without a difference and without a change of the source', async () => {
  const [first, second, third] = [settings(), settings({ ...(await testRedisEnv()), ...inBucket() }), settings()]
  await fill(first)
  const before = await contentOf(first)
  const files = picture(first.DATA_DIR)
  await move(first, second)
  expect(picture(first.DATA_DIR)).toEqual(files)
  expect(await contentOf(second)).toEqual(before)
  const objects = [...service.objects.keys()]
  await move(second, third)
  expect([...service.objects.keys()]).toEqual(objects)
  expect(await contentOf(third)).toEqual(before)
  expect(readdirSync(third.DATA_DIR).filter((name) => name.startsWith('migration-'))).toEqual([])
})

it('can be repeated after an interruption and after a success, until the target was used', async () => {
  const [from, to] = [settings(), settings({ ...(await testRedisEnv()), ...inBucket() })]
  await fill(from)
  let puts = 0
  service.fault = ({ method }) => (method === 'PUT' && ++puts > 6 ? 'forbidden' : undefined)
  await expect(move(from, to)).rejects.toThrow(/object store/)
  await expect(openStore(to, silentLogger)).rejects.toMatchObject({ code: 'restore_unfinished' })
  service.fault = () => undefined
  await move(from, to)
  await opened(from, async ({ store }) => void (await store.events.append('s-1', [{ type: 'late', data: {} }])))
  await move(from, to)
  expect(await contentOf(to)).toEqual(await contentOf(from))
  await opened(to, async ({ store }) => void (await store.events.append('s-1', [{ type: 'used', data: {} }])))
  await expect(move(from, to)).rejects.toMatchObject({ code: 'folder_not_empty' })
})

it('notices a difference, and then the target is not served', async () => {
  const [from, to] = [settings(), settings(inBucket())]
  await fill(from)
  const put = service.objects.set.bind(service.objects)
  service.objects.set = (key, held) => {
    const isPack = key.endsWith('.pack') && held.bytes.length > 1000
    const bytes = isPack
      ? Buffer.concat([held.bytes.subarray(0, -1), Buffer.from([~(held.bytes.at(-1) ?? 0)])])
      : held.bytes
    return put(key, { ...held, bytes })
  }
  await expect(move(from, to)).rejects.toThrow(/damaged|differ/)
  await expect(openStore(to, silentLogger)).rejects.toMatchObject({ code: 'restore_unfinished' })
})

it('writes nothing in a dry run, and refuses a running source, the same place and a missing one', async () => {
  const [from, to] = [settings(), settings(inBucket())]
  await fill(from)
  await move(from, to, true)
  expect(said.join('\n')).toMatch(/4 sessions, 1354 events, \d+ bytes of files/)
  expect(() => statSync(to.DATA_DIR)).toThrow()
  expect(service.objects.size).toBe(0)
  await expect(move(from, from)).rejects.toThrow(/the same store/)
  await expect(move(settings(), to)).rejects.toMatchObject({ code: 'migration_source' })
  const redis = settings(await testRedisEnv())
  await opened(redis, async ({ store }) => {
    await store.sessions.heartbeat('i', 60_000)
    await expect(move(redis, to)).rejects.toMatchObject({ code: 'migration_running' })
    await store.sessions.signOff('i')
  })
  rmSync(to.DATA_DIR, { recursive: true, force: true })
})

/** Commits a version of this age to a session. */
async function edit(of: Settings, id: string, text: string, days: number): Promise<void> {
  await opened(of, async ({ store, checkpoints }) => {
    const taken = await store.sessions.acquire(id, 'someone', 60_000)
    if (!taken.granted) throw new Error('held')
    const checkpoint = await checkpoints.open(id, taken.record.epoch)
    const content = Buffer.from(text)
    await checkpoint.addBlob(content)
    const after = fileEntry('a.txt', content)
    const changes = [{ path: 'a.txt', before: checkpoint.entries.get('a.txt') ?? null, after }]
    const at = Date.now() - days * 86_400_000
    const version = { id: `v${days}`, kind: 'version', at, about: { by: 'person' }, changes } as const
    await checkpoint.commit({ put: [after], deleted: [], keep: [version] })
    await checkpoint.close()
    await store.sessions.release(id, taken.record.epoch)
  })
}

it('moves versions and files beyond the limits of the target', async () => {
  const [from, to] = [settings({ RETENTION_DAYS: '3650' }), settings(inBucket())]
  await edit(from, 's-1', 'older', 100)
  await edit(from, 's-1', 'old', 40)
  await edit(from, 's-1', 'new', 1)
  await move(from, { ...to, SANDBOX_WORKSPACE_MB: 0, HISTORY_MB: 0 })
  await opened(to, async ({ store, checkpoints }) => {
    const { epoch = 0 } = (await store.sessions.get('s-1')) ?? {}
    const checkpoint = await checkpoints.open('s-1', epoch)
    expect([...checkpoint.changeSets.keys()]).toEqual(['v100', 'v40', 'v1'])
    await checkpoint.close()
  })
})

it('takes no bucket over that belongs to another installation, not even at the second attempt', async () => {
  const place = inBucket()
  const [other, from, to] = [settings(place), settings(), settings(place)]
  await fill(other)
  await fill(from)
  const before = [...service.objects].map(([key, { bytes }]) => [key, bytes.toString('base64')])
  for (const isDryRun of [false, false, true]) {
    await expect(move(from, to, isDryRun)).rejects.toMatchObject({ code: 'wrong_bucket' })
  }
  const same = settings({ ...place, CHECKPOINT_STORE: `${place.CHECKPOINT_STORE}/` })
  await expect(move(other, same)).rejects.toMatchObject({ code: 'usage' })
  expect([...service.objects].map(([key, { bytes }]) => [key, bytes.toString('base64')])).toEqual(before)
  await move(from, settings(inBucket()))
})
