import { randomUUID } from 'node:crypto'
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { testRedisEnv } from '../../../tests/support/test-redis.ts'
import { loadSettings } from '../../config/load-settings.ts'
import type { Settings } from '../../config/settings.ts'
import { silentLogger } from '../../lib/logger.ts'
import { fileEntry } from '../../storage/checkpoints/checkpoint-files.fixture.ts'
import { FakeObjectService } from '../../storage/objects/fake-object-service.ts'
import { openStore } from '../open-store.ts'
import { contentOf, fill, opened, picture } from './migrate.fixture.ts'
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
