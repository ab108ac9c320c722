/** The faults, one function each. Every fault repairs itself before it resolves, so that the walk continues with a working world. */
import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Random } from './random.ts'
import type { World } from './world.ts'

export type Fault = (world: World, random: Random) => Promise<string>

const run = promisify(execFile)

export const FAULTS: Record<string, { weight: number; make: Fault; needsBucket?: true }> = {
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
  },
  'kill a container': {
    weight: 4,
    async make(world, random) {
      const id = await someContainer(world, random)
      if (id) await world.engine.docker.getContainer(id).kill()
      return short(id)
    }
  },
  'stop a container': {
    weight: 2,
    async make(world, random) {
      const id = await someContainer(world, random)
      if (id) await world.engine.docker.getContainer(id).stop({ t: 1 })
      return short(id)
    }
  },
  'remove a container': {
    weight: 1,
    async make(world, random) {
      const id = await someContainer(world, random)
      if (id) await world.engine.docker.getContainer(id).remove({ force: true, v: true })
      return short(id)
    }
  },
  'stall a child': {
    weight: 3,
    async make(world, random) {
      const id = await someContainer(world, random)
      if (!id) return short(id)
      const { Processes: rows } = await world.engine.docker.getContainer(id).top({ ps_args: '-eo pid' })
      const pid = Number(random.pick(rows as string[][])[0])
      const ms = random.between(500, 6000)
      await frozen(pid, ms)
      return `process ${pid} for ${Math.round(ms)} ms`
    }
  },
  'fill a workspace': {
    weight: 2,
    async make(world, random) {
      const id = await someContainer(world, random)
      if (!id) return short(id)
      await inContainer(world, id, 'head -c 100000000 /dev/zero > fill 2>/dev/null')
      await delay(random.between(500, 2000))
      await inContainer(world, id, 'rm -f fill')
      return short(id)
    }
  },
  'stop the engine': {
    weight: 1,
    async make({ engine }, random) {
      await (random.chance(0.5) ? engine.stop() : engine.kill())
      await delay(random.between(500, 4000))
      await engine.start()
      return ''
    }
  },
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
  'cut sockets': {
    weight: 4,
    async make({ front }, random) {
      return `${front.cut(random)} of them`
    }
  }
}

export function pickFault(random: Random, hasBucket: boolean): string {
  const possible = Object.entries(FAULTS).filter(([, { needsBucket }]) => hasBucket || !needsBucket)
  return random.pick(possible.flatMap(([name, { weight }]) => Array<string>(weight).fill(name)))
}

async function frozen(pid: number | undefined, ms: number): Promise<void> {
  if (pid === undefined) return
  try {
    process.kill(pid, 'SIGSTOP')
    await delay(ms)
    process.kill(pid, 'SIGCONT')
  } catch {
    // It has ended meanwhile.
  }
}

async function someContainer({ engine }: World, random: Random): Promise<string | undefined> {
  const containers = await engine.docker.listContainers()
  const ids = containers.map(({ Id }) => Id).sort()
  return ids.length === 0 ? undefined : random.pick(ids)
}

async function inContainer({ engine }: World, id: string, script: string): Promise<void> {
  const host = `unix://${engine.socketPath}`
  await run('docker', ['-H', host, 'exec', '-w', '/workspace', id, 'sh', '-c', script], { timeout: 10_000 }).catch(
    () => {}
  )
}

function short(id: string | undefined): string {
  return id === undefined ? 'none was there' : id.slice(0, 12)
}
