/**
 * The faults, one function each; those of the place where sandboxes run are in its file. Every fault repairs itself before it resolves,
 * so that the walk continues with a working world.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from './random.ts'
import type { World } from './world.ts'

type Fault = (world: World, random: Random) => Promise<string>

export type Faults = Record<string, { weight: number; make: Fault; needsBucket?: true }>

/** Faults of the place where sandboxes run. */
export type PlaceFaults<P> = Record<string, { weight: number; make(place: P, random: Random): Promise<string> }>

export const SERVER_FAULTS: Faults = {
  'kill a server': {
    weight: 4,
    async make({ instances }, random) {
      const instance = random.pick(instances)
      await instance.end('SIGKILL')
      await delay(random.between(0, 2000))
      await instance.start()
      return `on port ${instance.port}`
    }
  },
  'stop a server': {
    weight: 2,
    async make({ instances }, random) {
      const instance = random.pick(instances)
      await instance.end('SIGTERM')
      await delay(random.between(0, 1000))
      await instance.start()
      return `on port ${instance.port}`
    }
  },
  /** Longer than its lease: when it wakes up, others own what it believes to be its own. */
  'freeze a server': {
    weight: 3,
    async make({ instances }, random) {
      const { pid, port } = random.pick(instances)
      const ms = random.between(500, 9000)
      await frozen(pid, ms)
      return `on port ${port} for ${Math.round(ms)} ms`
    }
  }
}

/** To the stores, and to the way of a client to a server. */
export const STORE_FAULTS: Faults = {
  'stop Redis': {
    weight: 2,
    async make({ redis }, random) {
      const signal = random.pick(['SIGTERM', 'SIGKILL'] as const)
      await redis.end(signal)
      await delay(random.between(200, 4000))
      await redis.start()
      return signal
    }
  },
  'freeze Redis': {
    weight: 1,
    async make({ redis }, random) {
      const ms = random.between(500, 4000)
      await frozen(redis.pid, ms)
      return `for ${Math.round(ms)} ms`
    }
  },
  'shut the bucket': {
    weight: 4,
    needsBucket: true,
    async make({ bucket }, random) {
      const ms = random.between(500, 30_000)
      bucket?.shut()
      await delay(ms)
      bucket?.open()
      return `for ${Math.round(ms)} ms`
    }
  },
  'silence the bucket': {
    weight: 2,
    needsBucket: true,
    async make({ bucket }, random) {
      const ms = random.between(500, 30_000)
      bucket?.silence()
      await delay(ms)
      bucket?.open()
      return `for ${Math.round(ms)} ms`
    }
  },
  'cut sockets': {
    weight: 4,
    async make({ front }, random) {
      return `${front.cut(random)} of them`
    }
  }
}

export function on<P>(place: P, faults: PlaceFaults<P>): Faults {
  const bound = ([name, { weight, make }]: [string, PlaceFaults<P>[string]]) =>
    [name, { weight, make: (_world: World, random: Random) => make(place, random) }] as const
  return Object.fromEntries(Object.entries(faults).map(bound))
}

export function pickFault(random: Random, { ground, bucket }: World): string {
  const possible = Object.entries(ground.faults).filter(([, { needsBucket }]) => bucket || !needsBucket)
  return random.pick(possible.flatMap(([name, { weight }]) => Array<string>(weight).fill(name)))
}

export async function frozen(pid: number | undefined, ms: number): Promise<void> {
  if (pid === undefined) return
  try {
    process.kill(pid, 'SIGSTOP')
    await delay(ms)
    process.kill(pid, 'SIGCONT')
  } catch {
    // It has ended meanwhile.
  }
}
