/** Baselines for our figures: what the engine itself costs, measured with the standard docker client. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { INSIDE } from '../workspace-server/protocol.ts'

const run = promisify(execFile)
const LIMITS = '--memory 512m --memory-swap 512m --cpus 0.5 --pids-limit 128 --network none'.split(' ')
const MOUNTS = ['--tmpfs', `${INSIDE.root}:exec,uid=10001,size=256m`, '--tmpfs', `${INSIDE.state}:uid=10001,size=1m`]
const HARDENED = ['--init', '--read-only', '--user', '10001:10001', '--cap-drop', 'ALL', ...LIMITS, ...MOUNTS]

export const SERVER_COMMAND = [INSIDE.node, '--disable-sigusr1', INSIDE.server, '--epoch', '1']
const clientInfo = { name: 'bench', version: '1' }
export const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }

/** Runs a container of the image with the workspace server as its command, until it has answered `initialize`. */
export async function coldDockerRun(image: string): Promise<number> {
  const start = performance.now()
  const child = spawn('docker', ['run', '--rm', '-i', ...HARDENED, image, ...SERVER_COMMAND])
  const message = { jsonrpc: '2.0', id: 'bench-1', method: 'initialize', params: INITIALIZE }
  child.stdin.write(`${JSON.stringify(message)}\n`)
  await once(child.stdout, 'data')
  const took = performance.now() - start
  child.stdin.end()
  await once(child, 'exit')
  return took
}

/** Starts idle containers of the image all at once; returns the time until the last one runs. */
export async function bareContainers(image: string, count: number): Promise<{ ms: number; ids: string[] }> {
  const start = performance.now()
  const ids = await Promise.all(
    Array.from({ length: count }, async () => {
      const { stdout } = await run('docker', ['run', '-d', ...HARDENED, image, INSIDE.idle, '600'])
      return stdout.trim()
    })
  )
  return { ms: performance.now() - start, ids }
}

export async function removeContainers(ids: string[]): Promise<void> {
  if (ids.length > 0) await run('docker', ['rm', '-f', ...ids])
}
