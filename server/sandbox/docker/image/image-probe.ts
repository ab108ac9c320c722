import type Dockerode from 'dockerode'
import { withDeadline } from '../../../lib/waiting/deadline.ts'
import { seccompOption } from '../engine/seccomp-profile.ts'
import { engineMessage } from './image-progress.ts'
import type { UserFiles } from './image-users.ts'

const PROBE_MS = 60_000
const MAX_OUTPUT = 4 * 1024 * 1024

/** Checks what the sandbox needs from its image, as the sandbox's user and under its restrictions. */
const SANDBOX_CHECK_SCRIPT = `
for tool in mkfifo rm; do type $tool >/dev/null || exit 1; done
exec /opt/mcp/node -e 'console.log("sandbox-ok")'
`

/** Returns null if the image works, otherwise the reason that the image gave. */
export async function whyUnusable(docker: Dockerode, image: string, uid: number): Promise<string | null> {
  const output = await runInImage(docker, image, { script: SANDBOX_CHECK_SCRIPT, uid })
  if (output.includes('sandbox-ok')) return null
  return lastLine(output)
}

function lastLine(output: string): string {
  return output.trim().split('\n').at(-1)?.trim() || 'its /bin/bash or Node ended without output'
}

/** The markers keep the engine's own messages apart from the lines of the files. */
const READ_BASE_SCRIPT = `
echo bash-found
type -P node >/dev/null && echo node-found
for file in passwd group; do echo "$file-begin"; cat "/etc/$file"; echo; echo "$file-end"; done 2>/dev/null
`

export interface BaseImage extends UserFiles {
  hasNode: boolean
  /** Why the base has no bash that runs; null if it has one. */
  problem: string | null
}

/** Reads what the next build step needs to know about a base. */
export async function readBase(docker: Dockerode, image: string, uid: number): Promise<BaseImage> {
  const output = await runInImage(docker, image, { script: READ_BASE_SCRIPT, uid })
  const text = output.replaceAll('\r', '')
  const between = (file: string) => new RegExp(`^${file}-begin\\n([^]*?)^${file}-end$`, 'm').exec(text)?.[1] ?? ''
  const problem = /^bash-found$/m.test(text) ? null : lastLine(output)
  return { hasNode: /^node-found$/m.test(text), passwd: between('passwd'), group: between('group'), problem }
}

interface Run {
  script: string
  uid: number
}

/** Runs a script with the image's bash and returns its output. The engine removes the container even if this process dies. */
async function runInImage(docker: Dockerode, image: string, { script, uid }: Run): Promise<string> {
  return withDeadline({ what: `the engine to try ${image}`, ms: PROBE_MS }, async (abortSignal) => {
    const container = await docker.createContainer({
      Image: image,
      Entrypoint: ['/bin/bash', '-c', script],
      Cmd: [],
      User: `${uid}:${uid}`,
      // A terminal's output has no frames.
      Tty: true,
      HostConfig: {
        AutoRemove: true,
        ReadonlyRootfs: true,
        NetworkMode: 'none',
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges', seccompOption()],
        Memory: 256 * 1024 * 1024,
        PidsLimit: 64
      },
      abortSignal
    })
    let started = false
    try {
      const stream = await container.attach({ stream: true, stdout: true, stderr: true, abortSignal })
      const refusal = await container.start({ abortSignal }).then(() => null, engineRefusal)
      if (refusal !== null) return refusal
      started = true
      let output = ''
      for await (const chunk of stream) {
        output += chunk
        if (output.length > MAX_OUTPUT) break
      }
      return output
    } finally {
      if (!started || abortSignal.aborted) await container.remove({ force: true }).catch(() => {})
    }
  })
}

/** An image without bash fails at the start. That says something about the image, not about the engine. */
function engineRefusal(error: unknown): string {
  if (error instanceof Error && 'statusCode' in error) return engineMessage(error)
  throw error
}
