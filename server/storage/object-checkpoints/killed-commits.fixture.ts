/**
 * Changes of a session's files that a process makes until it is killed, and rounds of the collector, for the tests `killed-*`. Run as a
 * program, it prints the number of each change that is stored; its argument says where everything is and what to do.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { silentLogger } from '../../lib/logger.ts'
import type { CheckpointStore } from '../checkpoint-store.ts'
import { files as filesOf, MB, put } from '../checkpoints/checkpoint-files.fixture.ts'
import { openEmbeddedStore } from '../embedded/open-embedded-store.ts'
import type { FakeObjectService } from '../objects/fake-object-service.ts'
import { openTestObjects } from '../objects/fake-object-store.ts'
import { openRedisStore } from '../redis/open-redis-store.ts'
import type { Store } from '../store.ts'
import { Collector } from './collector.ts'
import { ObjectCache } from './object-cache.ts'
import { openObjectCheckpoints } from './open-object-checkpoints.ts'

export interface Place {
  /** Without it, the session store is in `dataDir`. */
  redis?: { url: string; deployment: string }
  dataDir: string
  cacheDir: string
  endpoint: string
  prefix: string
  sessionId: string
}

export interface Job extends Place {
  /** The process kills itself at the nth change of the head: when it is about to ask for it, or when it was answered. */
  atSwap?: { nth: number; isMade: boolean }
  /** Instead of changes: rounds of the collector. */
  rounds?: { from: number; to: number }
}

const ROUND_MS = 1.5 * 86_400_000

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

function checkpointsAt({ cacheDir, endpoint, prefix }: Place, { heads, sessions, keyValues }: Store): CheckpointStore {
  const logger = silentLogger
  const objects = openTestObjects({ endpoint })
  const cache = new ObjectCache({ dir: cacheDir, maxBytes: 256 * MB, objects, logger })
  const history = { maxBytes: 64 * MB, keptMs: Number.POSITIVE_INFINITY }
  const shared = { heads, sessions, keyValues }
  return openObjectCheckpoints({ objects, prefix, cache, ...shared, logger, maxBytes: 256 * MB, history })
}

function storeAt({ redis, dataDir }: Place): Promise<Store> {
  return redis
    ? openRedisStore({ ...redis, logger: silentLogger })
    : openEmbeddedStore({ dataDir, logger: silentLogger })
}

function killedAtSwap(store: Store, { atSwap }: Job): Store {
  if (!atSwap) return store
  let count = 0
  const { heads } = store
  const swap: typeof heads.swap = async (...args) => {
    const isNow = ++count === atSwap.nth
    if (isNow && !atSwap.isMade) process.kill(process.pid, 'SIGKILL')
    const result = await heads.swap(...args)
    if (isNow) process.kill(process.pid, 'SIGKILL')
    return result
  }
  return { ...store, heads: { ...heads, swap } }
}

/** The clocks of the session store and of the service are this much later. */
function collectorAt({ endpoint, prefix, sessionId }: Place, store: Store, laterMs: number): Collector {
  const { heads, keyValues } = store
  const objects = openTestObjects({ endpoint })
  const { list, listUploads } = objects
  objects.list = async (...args) => ({ ...(await list.apply(objects, args)), now: Date.now() + laterMs })
  objects.listUploads = async (...args) => ({ ...(await listUploads.apply(objects, args)), now: Date.now() + laterMs })
  const sessions = { ...store.sessions, now: async () => (await store.sessions.now()) + laterMs }
  const namedContents = async () => new Set<string>()
  const others = { namedContents, sessionIds: async () => [sessionId], instanceId: randomUUID(), logger: silentLogger }
  return new Collector({ objects, prefix, heads, keyValues, sessions, ...others })
}

/** Each round is a day and a half later than the one before. */
export async function collect(place: Place, { from, to }: { from: number; to: number }): Promise<void> {
  const store = await storeAt(place)
  for (let n = from; n < to; n++) await collectorAt(place, store, (n + 1) * ROUND_MS).round()
  await store.close()
}

async function change(place: Job, from: number, to: number, stored: (n: number) => void): Promise<void> {
  const store = killedAtSwap(await storeAt(place), place)
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

interface Life {
  /** The last change that was said to be stored. */
  acknowledged: number
  wasKilled: boolean
}

/** Does the job in a process of its own, until it ends or is killed. */
export async function live(job: Job, started: (child: ChildProcess) => void = () => {}): Promise<Life> {
  const args = ['--disable-warning=ExperimentalWarning', import.meta.filename, JSON.stringify(job)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += String(chunk)
  })
  started(child)
  const [code, signal] = await once(child, 'close')
  if (signal !== 'SIGKILL' && code !== 0) throw new Error(`The process ended with ${code}.`)
  const last = said.trim().split('\n').at(-1) ?? ''
  return { acknowledged: last === '' ? -1 : Number(last), wasKilled: signal === 'SIGKILL' }
}

/** The same, until its nth request is done and not answered. */
export async function liveUntilRequest(service: FakeObjectService, job: Job, nth: number): Promise<Life> {
  let child: ChildProcess | undefined
  let requests = 0
  service.fault = () => {
    if (++requests < nth) return undefined
    child?.kill('SIGKILL')
    return requests === nth ? 'lost' : 'cut'
  }
  const life = await live(job, (started) => {
    child = started
  })
  service.fault = () => undefined
  return life
}

/** Opens the files as the next owner, on the machine of the dead one and on another. */
export async function foundAfter(place: Place): Promise<Record<string, string>[]> {
  const store = await storeAt(place)
  try {
    const found: Record<string, string>[] = []
    for (const cacheDir of [place.cacheDir, join(place.dataDir, 'other-cache')]) {
      const known = await store.sessions.get(place.sessionId)
      if (known) await store.sessions.release(place.sessionId, known.epoch)
      const taken = await store.sessions.acquire(place.sessionId, randomUUID(), 60_000)
      if (!taken.granted) throw new Error('held')
      const checkpoint = await checkpointsAt({ ...place, cacheDir }, store).open(place.sessionId, taken.record.epoch)
      found.push(await filesOf(checkpoint))
      await checkpoint.close()
    }
    return found
  } finally {
    await store.close()
  }
}

if (process.argv[1] === import.meta.filename) {
  const job: Job = JSON.parse(process.argv[2] ?? '')
  if (job.rounds) await collect(job, job.rounds)
  else await change(job, BEFORE, CHANGES, (n) => process.stdout.write(`${n}\n`))
  process.exit(0)
}
