/**
 * Changes of a session's files that a process makes until it is killed, for `killed-commits.process.test.ts`. Run as a program, it prints
 * the number of each change that is stored; its argument says where everything is.
 */
import { randomUUID } from 'node:crypto'
import { silentLogger } from '../../lib/logger.ts'
import type { CheckpointStore } from '../checkpoint-store.ts'
import { MB, put } from '../checkpoints/checkpoint-files.fixture.ts'
import { openEmbeddedStore } from '../embedded/open-embedded-store.ts'
import { openTestObjects } from '../objects/fake-object-store.ts'
import type { Store } from '../store.ts'
import { ObjectCache } from './object-cache.ts'
import { openObjectCheckpoints } from './open-object-checkpoints.ts'

export interface Place {
  dataDir: string
  cacheDir: string
  endpoint: string
  prefix: string
  sessionId: string
}

/** So many small packs that the first change after them merges some. */
const BEFORE = 32
const LARGE = 34
export const CHANGES = 36

export function filesAfter(count: number): Record<string, string> {
  return Object.assign({}, ...Array.from({ length: count }, (_, n) => changeOf(n)))
}

function changeOf(n: number): Record<string, string> {
  // Stored in parts.
  const large = { large: String(n).repeat(5 * MB) }
  return { [`file-${n % 20}`]: `text ${n}`, count: String(n), ...(n === LARGE && large) }
}

export function checkpointsAt(
  { cacheDir, endpoint, prefix }: Place,
  { heads, sessions, keyValues }: Store
): CheckpointStore {
  const logger = silentLogger
  const objects = openTestObjects({ endpoint })
  const cache = new ObjectCache({ dir: cacheDir, maxBytes: 256 * MB, objects, logger })
  const history = { maxBytes: 64 * MB, keptMs: Number.POSITIVE_INFINITY }
  const shared = { heads, sessions, keyValues }
  return openObjectCheckpoints({ objects, prefix, cache, ...shared, logger, maxBytes: 256 * MB, history })
}

async function change(place: Place, from: number, to: number, stored: (n: number) => void): Promise<void> {
  const store = await openEmbeddedStore({ dataDir: place.dataDir, logger: silentLogger })
  const taken = await store.sessions.acquire(place.sessionId, randomUUID(), 60_000)
  if (!taken.granted) throw new Error('held')
  const { epoch } = taken.record
  const checkpoint = await checkpointsAt(place, store).open(place.sessionId, epoch)
  for (let n = from; n < to; n++) {
    await put(checkpoint, changeOf(n))
    stored(n)
  }
  await checkpoint.close()
  await store.sessions.release(place.sessionId, epoch)
  await store.close()
}

export const prepare = (place: Place) => change(place, 0, BEFORE, () => {})

if (process.argv[1] === import.meta.filename) {
  const place: Place = JSON.parse(process.argv[2] ?? '')
  await change(place, BEFORE, CHANGES, (n) => process.stdout.write(`${n}\n`))
  process.exit(0)
}
