import type Dockerode from 'dockerode'
import { withDeadline } from '../../lib/deadline.ts'
import { engineMessage } from './image-progress.ts'

const PROBE_MS = 60_000
const MAX_OUTPUT = 16 * 1024

/** What the sandbox needs from its image, tried as the sandbox's user under the sandbox's restrictions. */
const SANDBOX_CHECK = `
for tool in mkfifo rm; do type $tool >/dev/null || exit 1; done
exec /opt/mcp/node -e 'console.log("sandbox-ok")'
`

/** null: the image works. Else the reason, as the image itself gave it. */
export async function whyUnusable(docker: Dockerode, image: string): Promise<string | null> {
  const output = await runInImage(docker, image, SANDBOX_CHECK)
  if (output.includes('sandbox-ok')) return null
  return output.trim().split('\n').at(-1)?.trim() || 'its /bin/bash or Node ended without a word'
}

export async function hasNode(docker: Dockerode, image: string): Promise<boolean> {
  return (await runInImage(docker, image, 'type -P node && echo node-found')).includes('node-found')
}

/** Runs a script with the image's bash and returns what it printed. The engine removes the container, also when we die. */
async function runInImage(docker: Dockerode, image: string, script: string): Promise<string> {
  return withDeadline({ what: `the engine to try ${image}`, ms: PROBE_MS }, async (abortSignal) => {
    const container = await docker.createContainer({
      Image: image,
      Entrypoint: ['/bin/bash', '-c', script],
      Cmd: [],
      User: '10001:10001',
      // A terminal's output comes unframed.
      Tty: true,
      HostConfig: {
        AutoRemove: true,
        ReadonlyRootfs: true,
        NetworkMode: 'none',
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
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

/** An image that lacks even bash fails at the start; that is an answer about the image, and not about the engine. */
function engineRefusal(error: unknown): string {
  if (error instanceof Error && 'statusCode' in error) return engineMessage(error)
  throw error
}
