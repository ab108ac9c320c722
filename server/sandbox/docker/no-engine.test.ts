import Dockerode from 'dockerode'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { loadSettings } from '../../config/load-settings.ts'
import { sandboxLimits } from '../../config/sandbox-limits.ts'
import { createDockerEngine } from './docker-engine.ts'

const docker = new Dockerode({ socketPath: '/nonexistent/docker.sock' })
const limits = sandboxLimits(loadSettings({ env: {} }))
const sentence = /^The container engine does not answer at \/nonexistent\/docker\.sock: start Docker/

it('is said as such, also by what makes the image; and no container is said to be left behind', async () => {
  const lines: string[] = []
  const logger = pino({}, { write: (line: string) => void lines.push(line) })
  const images = { name: async () => 'x', exists: async () => true, ensure: async () => 'x' }
  const engine = createDockerEngine({ limits, logger, docker, images })
  await expect(engine.create({ deployment: 'd', instance: 'i' })).rejects.toThrow(sentence)
  expect(lines).toEqual([])
  await expect(createDockerEngine({ limits, logger, docker }).ensureImage()).rejects.toThrow(sentence)
})
