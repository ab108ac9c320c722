import Dockerode from 'dockerode'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { loadSettings } from '../../config/load-settings.ts'
import { sandboxLimits } from '../../config/sandbox-limits.ts'
import { createDockerEngine } from './docker-engine.ts'

const docker = new Dockerode({ socketPath: '/nonexistent/docker.sock' })
const limits = sandboxLimits(loadSettings({ env: {} }))
const sentence = /^The container engine does not answer: start Docker/

it('is reported as such, also while the image is built; and no container is reported as left behind', async () => {
  const lines: string[] = []
  const logger = pino({}, { write: (line: string) => void lines.push(line) })
  const images = { name: async () => 'x', exists: async () => true, ensure: async () => 'x' }
  const engine = createDockerEngine({ limits, logger, docker, images })
  await expect(engine.create({ deployment: 'd', instance: 'i' })).rejects.toThrow(sentence)
  expect(lines).toEqual([])
  await expect(createDockerEngine({ limits, logger, docker }).ensureImage()).rejects.toThrow(sentence)
})

// Seen before: while the image was being built, the chat told people to build it.
it('refuses a sandbox while its image is being built, and says so', async () => {
  const { promise: built, reject } = Promise.withResolvers<never>()
  const images = {
    name: async () => 'x',
    exists: async () => false,
    async ensure(say?: (line: string) => void) {
      say?.('Step 1/2 : FROM base')
      return built
    }
  }
  const engine = createDockerEngine({ limits, logger: pino({ enabled: false }), docker, images })
  expect(await engine.waitForBuild()).toBe(false)
  const ensured = engine.ensureImage()
  const waited = engine.waitForBuild()
  const message = 'The sandbox image is being built. Try again in a minute.'
  await expect(engine.create({ deployment: 'd', instance: 'i' })).rejects.toMatchObject({ message })
  reject(new Error('failed'))
  await expect(ensured).rejects.toThrow('failed')
  expect(await waited).toBe(true)
  await expect(engine.create({ deployment: 'd', instance: 'i' })).rejects.toThrow(sentence)
})
