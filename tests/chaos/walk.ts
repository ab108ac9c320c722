/** One walk: people at work, faults from a seed, then peace, then the question whether everything still holds. */
import { cpSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { StoredEvent } from '../../server/storage/event-log.ts'
import type { Store } from '../../server/storage/store.ts'
import { eventually } from '../support/eventually.ts'
import { pickFault } from './faults.ts'
import { type Evidence, violations } from './invariants.ts'
import { seededRandom } from './random.ts'
import { type Journal, Worker } from './worker.ts'
import { type Ground, openWorld, type World, type WorldOptions } from './world.ts'

export interface WalkOptions extends WorldOptions {
  seed: number
  seconds: number
  sessions?: number
  /** Only this one, over and over. */
  fault?: string | undefined
  /** The maximum time for removing what was left behind. */
  tidyMs?: number
  /** Ends it early, with an error. Everything is cleaned up as usual. */
  signal?: AbortSignal
  say?: (line: string) => void
}

export interface Walk {
  faults: string[]
  messages: number
  /** Marks of commands in the workspaces. */
  effects: number
  /** How many previews were kept, reviews decided and files uploaded. */
  kept: number
  reviewed: number
  uploaded: number
  violations: string[]
}

const TIDY_MS = 60_000

export async function walk(ground: Ground, options: WalkOptions): Promise<Walk> {
  const { seed, seconds, sessions = 6, say = () => {} } = options
  const world = await openWorld(ground, options)
  try {
    const workers = Array.from(
      { length: sessions },
      (_, index) => new Worker(world.front.url, `${seed}-${index}`, seededRandom(seed * 1000 + index))
    )
    const stopping = new AbortController()
    const working = Promise.all(workers.map((worker) => worker.work(stopping.signal)))
    working.catch(() => {}) // Awaited below, unless the walk is ended early.
    const faults = await shake(world, options, say).finally(() => stopping.abort())
    await working
    say(`${seconds} s are over; all is up again`)
    const evidence = await gather(world, workers, options.tidyMs ?? TIDY_MS, say)
    const messages = workers.reduce((sum, { journal }) => sum + journal.accepted.length, 0)
    const ofCommands = evidence.sessions.flatMap(({ journal, effects }) =>
      Array.isArray(effects) ? effects.filter((marker) => !journal.tried.includes(marker)) : []
    )
    const effects = ofCommands.length
    const found = violations(evidence)
    const sum = (of: (journal: Journal) => number) => workers.reduce((all, { journal }) => all + of(journal), 0)
    const [kept, reviewed] = [sum((journal) => journal.kept), sum((journal) => journal.reviewed)]
    const [undone, uploaded] = [sum((journal) => journal.undone), sum((journal) => journal.uploaded.length)]
    const branches = sum((journal) => journal.branches.length)
    say(`${kept} kept, ${reviewed} reviews, ${uploaded} uploads, ${undone} undone, ${branches} branches`)
    if (found.length > 0) say(`the evidence is in ${keepEvidence(world, seed, evidence)}`)
    return { faults, messages, effects, kept, reviewed, uploaded, violations: found }
  } finally {
    await world.close()
  }
}

/** Stores the logs of the servers and the evidence of the checker, for a later analysis. */
function keepEvidence(world: World, seed: number, evidence: Evidence): string {
  const dir = mkdtempSync(join(tmpdir(), `chaos-seed-${seed}-`))
  for (const file of readdirSync(world.dir).filter((name) => name.endsWith('.log'))) {
    cpSync(join(world.dir, file), join(dir, file))
  }
  writeFileSync(join(dir, 'evidence.json'), JSON.stringify(evidence, null, 2))
  return dir
}

async function shake(world: World, { seed, seconds, fault, signal }: WalkOptions, say: (line: string) => void) {
  const random = seededRandom(seed)
  const until = Date.now() + seconds * 1000
  const done: string[] = []
  while (Date.now() < until) {
    await delay(random.between(500, 3000), undefined, signal ? { signal } : {})
    const name = fault ?? pickFault(random, world)
    const told = await world.ground.faults[name]?.make(world, random).catch((error) => `failed: ${error}`)
    done.push(name)
    say(`${name} ${told}`)
  }
  await Promise.all(world.instances.map((instance) => instance.start()))
  return done
}

async function gather(world: World, workers: Worker[], tidyMs: number, say: (line: string) => void): Promise<Evidence> {
  const sessions = await Promise.all(
    workers.map(async (worker) => ({
      journal: worker.journal,
      effects: await worker.finish().catch((error) => (error instanceof Error ? error : new Error(String(error))))
    }))
  )
  for (const worker of workers) worker.close()
  const store = await world.openStore()
  try {
    // The other servers clean up after killed ones, after a grace period.
    let strays: Evidence['strays'] = []
    const isTidy = async () => {
      strays = await findStrays(world, store)
      // A killed server counts as alive until its last heartbeat expires. Until then, its containers look like its warm pool.
      return strays.length === 0 && (await store.sessions.instances()).length === world.instances.length
    }
    await eventually('no container is too many', isTidy, tidyMs).catch((error) => say(String(error)))
    await Promise.all(world.instances.map((instance) => instance.end('SIGTERM')))
    return {
      sessions: await Promise.all(
        sessions.map(async (session) => ({
          ...session,
          events: await allEvents(store, session.journal.sessionId),
          branches: await Promise.all(session.journal.branches.map((id) => allEvents(store, id)))
        }))
      ),
      records: await store.sessions.list(),
      strays,
      instances: await store.sessions.instances()
    }
  } finally {
    await store.close()
  }
}

async function allEvents({ events }: Store, sessionId: string): Promise<StoredEvent[]> {
  const all: StoredEvent[] = []
  for (;;) {
    const page = await events.read(sessionId, { after: all.length })
    if (page.length === 0) return all
    all.push(...page)
  }
}

/** Containers that no session is bound to, beyond the one that each living server keeps in reserve. */
async function findStrays({ ground }: World, store: Store): Promise<Evidence['strays']> {
  const sandboxes = await ground.sandboxes()
  const bound = new Set((await store.sessions.list()).map(({ containerId }) => containerId))
  const reserve = new Set(await store.sessions.instances())
  return sandboxes.filter(({ id }) => !bound.has(id)).filter(({ instance }) => !reserve.delete(instance))
}
