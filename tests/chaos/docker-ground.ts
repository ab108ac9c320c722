/** Sandboxes as containers of an engine of their own. The machine's engine is not touched. */
import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import Dockerode from 'dockerode'
import { openEngine } from '../../server/app/engine/open-engine.ts'
import { loadSettings } from '../../server/config/load-settings.ts'
import { silentLogger } from '../../server/lib/logger.ts'
import { LABEL } from '../../server/sandbox/docker/engine/container-spec.ts'
import { copyImage, type PrivateEngine, startPrivateEngine } from '../support/private-dockerd.ts'
import { frozen, on, type PlaceFaults, SERVER_FAULTS, STORE_FAULTS } from './faults.ts'
import type { Random } from './random.ts'
import type { Ground } from './world.ts'

const run = promisify(execFile)

/** An engine with the image in it; takes a while, and serves many walks. */
export async function startEngine(): Promise<PrivateEngine> {
  const ours = await openEngine(loadSettings({ env: {} }), silentLogger)
  const image = await ours.ensureImage()
  await ours.close()
  const engine = await startPrivateEngine()
  try {
    await copyImage(new Dockerode(), engine.docker, image)
    return engine
  } catch (error) {
    await engine.dispose()
    throw error
  }
}

export function dockerGround(engine: PrivateEngine): Ground {
  return {
    env: { DOCKER_HOST: `unix://${engine.socketPath}` },
    faults: { ...SERVER_FAULTS, ...on(engine, CONTAINER_FAULTS), ...STORE_FAULTS },
    async sandboxes() {
      const containers = await engine.docker.listContainers({ all: true })
      return containers.map(({ Id, State, Labels }) => ({
        id: Id,
        state: State,
        instance: Labels[LABEL.instance] ?? ''
      }))
    },
    async reset() {
      await engine.start()
      await engine.removeContainers()
    },
    dispose: () => engine.dispose()
  }
}

/** A fault of one container, if there is any. */
function toContainer(
  weight: number,
  act: (container: Dockerode.Container) => Promise<unknown>
): PlaceFaults<PrivateEngine>[string] {
  return {
    weight,
    async make({ docker }, random) {
      const id = await someContainer(docker, random)
      if (id) await act(docker.getContainer(id))
      return short(id)
    }
  }
}

const CONTAINER_FAULTS: PlaceFaults<PrivateEngine> = {
  'kill a container': toContainer(4, (container) => container.kill()),
  'stop a container': toContainer(2, (container) => container.stop({ t: 1 })),
  'remove a container': toContainer(1, (container) => container.remove({ force: true, v: true })),
  'stall a child': {
    weight: 3,
    async make(engine, random) {
      const { docker } = engine
      const id = await someContainer(docker, random)
      if (!id) return short(id)
      const { Processes: rows } = await docker.getContainer(id).top({ ps_args: '-eo pid' })
      const pid = Number(random.pick(rows as string[][])[0])
      const ms = random.between(500, 6000)
      await frozen(pid, ms)
      return `process ${pid} for ${Math.round(ms)} ms`
    }
  },
  'fill a workspace': {
    weight: 2,
    async make(engine, random) {
      const { docker } = engine
      const id = await someContainer(docker, random)
      if (!id) return short(id)
      await inContainer(engine, id, 'head -c 100000000 /dev/zero > fill 2>/dev/null')
      await delay(random.between(500, 2000))
      await inContainer(engine, id, 'rm -f fill')
      return short(id)
    }
  },
  'stop the engine': {
    weight: 1,
    async make(engine, random) {
      await (random.chance(0.5) ? engine.stop() : engine.kill())
      await delay(random.between(500, 4000))
      await engine.start()
      return ''
    }
  }
}

async function someContainer(docker: Dockerode, random: Random): Promise<string | undefined> {
  const containers = await docker.listContainers()
  const ids = containers.map(({ Id }) => Id).sort()
  return ids.length === 0 ? undefined : random.pick(ids)
}

async function inContainer(engine: PrivateEngine, id: string, script: string): Promise<void> {
  const host = `unix://${engine.socketPath}`
  await run('docker', ['-H', host, 'exec', '-w', '/workspace', id, 'sh', '-c', script], { timeout: 10_000 }).catch(
    () => {}
  )
}

function short(id: string | undefined): string {
  return id === undefined ? 'none was there' : id.slice(0, 12)
}
