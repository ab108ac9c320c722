/**
 * Files of sessions in a folder and in a bucket, side by side: what a commit and a restore take, and what a session costs after many
 * turns. The bucket is on the service that TEST_S3_ENDPOINT names, else on one in this process.
 */
import { randomBytes } from 'node:crypto'
import { observed } from '../server/lib/observed.ts'
import type { CheckpointStore } from '../server/storage/checkpoint-store.ts'
import { CheckpointFixture, put } from '../server/storage/checkpoints/checkpoint-files.fixture.ts'
import { ObjectFixture } from '../server/storage/object-checkpoints/object-checkpoints.fixture.ts'
import { sessionFolder } from '../server/storage/object-checkpoints/object-names.ts'
import { hasRealService } from '../server/storage/objects/fake-object-store.ts'
import { quantile, round } from './statistics.ts'

const MB = 1024 * 1024
/** Enough for some manifests with the whole state. */
const COMMITS = 200
const TURNS = 1000

interface Place {
  /** A new instance without a cache. */
  instance(): CheckpointStore
  takeOver(sessionId: string): Promise<number>
  /** Requests to the service so far, and bytes sent there. */
  requests(): number
  sent(): number
}

export async function fileFigures(): Promise<object> {
  const folder = new CheckpointFixture()
  let epoch = 0
  const inFolder = {
    instance: () => folder.storeOf(512 * MB),
    takeOver: async () => ++epoch,
    requests: () => 0,
    sent: () => 0
  }
  const fixture = await ObjectFixture.open({ isReal: hasRealService })
  let requests = 0
  let sent = 0
  const { objects } = fixture
  const { put: store } = objects
  objects.put = (key, content) => {
    sent += content.bytes
    return store.call(objects, key, content)
  }
  fixture.objects = observed(objects, () => {
    requests++
  })
  const inBucket: Place = {
    instance: () => fixture.instance(512 * MB),
    takeOver: (id) => fixture.takeOver(id),
    requests: () => requests,
    sent: () => sent
  }
  const service = hasRealService ? 'the service of TEST_S3_ENDPOINT' : 'in this process'
  const figures = { service, folder: await figuresOf(inFolder), bucket: await figuresOf(inBucket) }
  const all = await sizeOf(fixture)
  const named = await fixture.instance().bytes(['turns'])
  const after = { objects: all.objects, megabytes: round(all.bytes / MB), megabytesThatCount: round(named / MB) }
  await fixture.dispose()
  folder.dispose()
  return { ...figures, [`bucketAfter${TURNS}Turns`]: after }
}

async function figuresOf(place: Place): Promise<object> {
  const commit: Record<string, object> = {}
  for (const count of [1, 100, 10_000]) {
    process.stderr.write(`one changed file of ${count}\n`)
    commit[`of${count}`] = await commits(place, count)
  }
  const small = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`file-${i}`, randomBytes(4000)]))
  const large = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`large-${i}`, randomBytes(10 * MB)]))
  const restore = { of100Files: await restored(place, 'small', small), of100Mb: await restored(place, 'large', large) }
  process.stderr.write(`${TURNS} turns\n`)
  const before = place.requests()
  const session = await place.instance().open('turns', await place.takeOver('turns'))
  for (let i = 0; i < TURNS; i++) await put(session, { [`file-${i % 50}`]: `turn ${i} ${'x'.repeat(500)}` })
  await session.close()
  return { commit, restore, requestsPerTurn: (place.requests() - before) / TURNS }
}

async function commits(place: Place, count: number): Promise<object> {
  const id = `commit-${count}`
  const session = await place.instance().open(id, await place.takeOver(id))
  await put(session, Object.fromEntries(Array.from({ length: count }, (_, i) => [`folder/file-${i}`, `text ${i}`])))
  const before = { requests: place.requests(), sent: place.sent() }
  const times: number[] = []
  for (let i = 0; i < COMMITS; i++) {
    const began = performance.now()
    await put(session, { 'folder/file-0': `changed ${i}` })
    times.push(performance.now() - began)
  }
  await session.close()
  return {
    p50Ms: round(quantile(times, 0.5)),
    p95Ms: round(quantile(times, 0.95)),
    requests: (place.requests() - before.requests) / COMMITS,
    kilobytes: round((place.sent() - before.sent) / COMMITS / 1000)
  }
}

async function restored(place: Place, id: string, files: Record<string, Uint8Array>): Promise<object> {
  const session = await place.instance().open(id, await place.takeOver(id))
  await put(session, files)
  await session.close()
  const before = place.requests()
  const began = performance.now()
  const next = await place.instance().open(id, await place.takeOver(id))
  for (const entry of next.entries.values()) {
    if (entry.type === 'file') for await (const _ of next.read(entry.hash, MB));
  }
  await next.close()
  return { ms: round(performance.now() - began), requests: place.requests() - before }
}

async function sizeOf({ objects, prefix }: ObjectFixture): Promise<{ objects: number; bytes: number }> {
  const total = { objects: 0, bytes: 0 }
  const folder = sessionFolder(prefix, 'turns')
  for (let from: string | undefined; ; ) {
    const page = await objects.list(folder, from)
    total.objects += page.found.length
    total.bytes += page.found.reduce((sum, { bytes }) => sum + bytes, 0)
    from = page.next
    if (from === undefined) return total
  }
}
