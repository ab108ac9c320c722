/** One walk: people at work, faults from a seed, then peace, then the question whether everything still holds. */
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../fixtures/core.ts'
import type { PrivateEngine } from '../private-dockerd.ts'
import { FAULTS, pickFault } from './faults.ts'
import { type Evidence, violations } from './invariants.ts'
import { seededRandom } from './random.ts'
import { Worker } from './worker.ts'
import { openWorld, type World, type WorldOptions } from './world.ts'

export interface WalkOptions extends WorldOptions {
  seed: number
  seconds: number
  sessions?: number
  /** Only this one, over and over. */
  fault?: string | undefined
  say?: (line: string) => void
}

export interface Walk {
  faults: string[]
  messages: number
  effects: number
  violations: string[]
}

const ORPHANS_MS = 60_000

export async function walk(engine: PrivateEngine, options: WalkOptions): Promise<Walk> {
  const { seed, seconds, sessions = 6, say = () => {} } = options
  const world = await openWorld(engine, options)
  try {
    const workers = Array.from(
      { length: sessions },
      (_, index) => new Worker(world.front.url, `${seed}-${index}`, seededRandom(seed * 1000 + index))
    )
    const stopping = new AbortController()
    const working = workers.map((worker) => worker.work(stopping.signal))
    const faults = await shake(world, options, say)
    stopping.abort()
    await Promise.all(working)
    say(`${seconds} s are over; all is up again`)
    const evidence = await gather(world, workers)
    const messages = workers.reduce((sum, { journal }) => sum + journal.accepted.length, 0)
    const effects = evidence.sessions.reduce(
      (sum, { effects }) => sum + (Array.isArray(effects) ? effects.length : 0),
      0
    )
    return { faults, messages, effects, violations: violations(evidence) }
  } finally {
    await world.close()
  }
}

async function shake(world: World, { seed, seconds, fault }: WalkOptions, say: (line: string) => void) {
  const random = seededRandom(seed)
  const until = Date.now() + seconds * 1000
  const done: string[] = []
  while (Date.now() < until) {
    await delay(random.between(500, 3000))
    const name = fault ?? pickFault(random)
    const told = await FAULTS[name]?.make(world, random).catch((error) => `failed: ${error}`)
    done.push(name)
    say(`${name} ${told}`)
  }
  await Promise.all(world.instances.map((instance) => instance.start()))
  return done
}

async function gather(world: World, workers: Worker[]): Promise<Evidence> {
  const sessions = await Promise.all(
    workers.map(async (worker) => ({
      journal: worker.journal,
      effects: await worker.finish().catch((error) => (error instanceof Error ? error : new Error(String(error))))
    }))
  )
  for (const worker of workers) worker.close()
  const store = await world.openStore()
  try {
    const containers = async () => (await world.engine.docker.listContainers({ all: true })).map(({ Id }) => Id)
    const bound = async () => (await store.sessions.list()).flatMap(({ containerId }) => containerId ?? [])
    // What killed servers left behind is cleared up by the others, after a time of grace.
    await eventually(
      'only bound containers and those of the pools are left',
      async () => (await containers()).length <= (await bound()).length + world.instances.length,
      ORPHANS_MS
    ).catch(() => {})
    await Promise.all(world.instances.map((instance) => instance.end('SIGTERM')))
    const events = (sessionId: string) => store.events.read(sessionId, { limit: 10_000 })
    return {
      sessions: await Promise.all(
        sessions.map(async (session) => ({ ...session, events: await events(session.journal.sessionId) }))
      ),
      records: await store.sessions.list(),
      containers: await containers(),
      instances: await store.sessions.instances()
    }
  } finally {
    await store.close()
  }
}
