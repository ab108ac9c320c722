import { randomUUID } from 'node:crypto'
import Dockerode from 'dockerode'
import { silentLogger } from '../../lib/logger.ts'
import type { SandboxLimits } from '../port.ts'
import { createDockerEngine } from './docker-engine.ts'

export const LIMITS: SandboxLimits = { memoryMb: 512, cpus: 0.5, pids: 128, workspaceMb: 256, network: 'none' }

/** Real containers for one test file, with their own deployment. `removeAll` removes all of them. */
export function createTestSandboxes(limits: SandboxLimits = LIMITS) {
  const docker = new Dockerode()
  const engine = createDockerEngine({ limits, logger: silentLogger, docker })
  const owner = { deployment: `test-${randomUUID()}`, instance: 'test' }
  return {
    docker,
    engine,
    owner,
    create: () => engine.create(owner),
    async open(epoch = 1) {
      const id = await engine.create(owner)
      return { id, connection: await engine.connect(id, epoch) }
    },
    async removeAll() {
      await engine.close()
      for (const { id } of await engine.list(owner.deployment)) await engine.remove(id)
    }
  }
}
