/** `image` builds the sandbox image and brings it to a registry, for the nodes of a cluster. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { terminalLine } from '../../../contract/hidden-characters.ts'
import { sandboxLimits } from '../../config/sandbox-limits.ts'
import type { Settings } from '../../config/settings.ts'
import { AppError, messageOf } from '../../lib/errors.ts'
import { silentLogger } from '../../lib/logger.ts'
import { createDockerEngine } from '../../sandbox/docker/docker-engine.ts'
import type { Command } from '../command.ts'

const PUSH_MS = 1_800_000
/** A registry's name, a path, and a tag. What begins with a dash would be an option of docker. */
const TAG = /^[a-z0-9][a-z0-9.-]*(:\d+)?(\/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][\w.-]{0,127})?$/

/** Builds the image and returns its name on this machine. */
type Build = () => Promise<string>
/** Runs the command-line client, which knows the logins to registries, and returns what it prints. */
type RunDocker = (args: string[]) => Promise<string>

const ACTIONS: Record<string, (tag: string, build: Build, docker: RunDocker) => Promise<string[]>> = {
  async build(tag, build, docker) {
    await docker(['tag', await build(), tag])
    return [`The sandbox image is ${tag}. Bring it to its registry: mcp-orchestrator image push --tag ${tag}`]
  },
  async push(tag, _build, docker) {
    await docker(['push', '--quiet', tag])
    const repository = tag.replace(/:[^:/]*$/, '')
    const digests = (
      await docker(['image', 'inspect', '--format', '{{range .RepoDigests}}{{println .}}{{end}}', tag])
    ).split('\n')
    const digest = digests.find((each) => each.startsWith(`${repository}@sha256:`))
    if (digest) return ['Pushed. All nodes run the same image with this setting:', `KUBERNETES_IMAGE=${digest.trim()}`]
    throw new AppError('unavailable', 'image_push_failed', `The registry gave no digest for ${tag}.`)
  }
}

export const imageCommand: Command = {
  name: 'image',
  summary: 'build the sandbox image, and push it to a registry for the nodes of a cluster',
  usage: [
    'build --tag REGISTRY/NAME          build it, and name it on this machine',
    'push --tag REGISTRY/NAME           push it, and print its digest for KUBERNETES_IMAGE'
  ],
  flags: { tag: { type: 'string', help: 'the name of the image, with its registry' } },
  mainSettings: ['SANDBOX_IMAGE', 'SANDBOX_UIDS'],
  async run(settings, { words: [action = '', ...more], flags }) {
    const lines = await runImage({ action: more.length === 0 ? action : '', tag: String(flags.tag ?? '') }, () => {
      return buildImage(settings)
    })
    for (const line of lines) process.stdout.write(`${terminalLine(line)}\n`)
    return 0
  }
}

export async function runImage(
  { action, tag }: { action: string; tag: string },
  build: Build,
  docker: RunDocker = runDocker
): Promise<string[]> {
  const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
  if (!act || !TAG.test(tag)) {
    const message =
      'Say "image build --tag REGISTRY/NAME" or "image push --tag REGISTRY/NAME". See mcp-orchestrator image --help.'
    throw new AppError('invalid', 'usage', message)
  }
  return act(tag, build, docker)
}

async function buildImage(settings: Settings): Promise<string> {
  const engine = createDockerEngine({
    ...{ limits: sandboxLimits(settings), image: settings.SANDBOX_IMAGE, logger: silentLogger }
  })
  try {
    return await engine.ensureImage((line) => void process.stderr.write(`  ${terminalLine(line)}\n`))
  } finally {
    await engine.close()
  }
}

async function runDocker(args: string[]): Promise<string> {
  try {
    return (await promisify(execFile)('docker', args, { timeout: PUSH_MS })).stdout
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim().slice(-500) : ''
    throw new AppError('unavailable', 'image_push_failed', `docker ${args[0]} failed: ${said || messageOf(error)}`)
  }
}
