/**
 * Finds the containers of this project that a test run has left on the engine. Containers in use don't count: a running server or
 * another test run has a process in each of its containers.
 */
import { execFile } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** A container that is being created or removed has no process for a moment. */
const SETTLE_MS = 20_000
const LOOK_EVERY_MS = 500

interface Found {
  line: string
  isUp: boolean
  /** The container of a server with `sandbox` ends by itself when the process that started it is gone. */
  isChild: boolean
}

/** The containers of this project, by id. Empty if no engine answers. */
export async function listContainers(): Promise<Map<string, Found>> {
  const format = '{{.ID}}\t{{.Label "mcp-orchestrator.server"}}\t{{.Status}}\t{{.Names}}\t{{.Image}}'
  const rows = (await docker(['ps', '--all', '--no-trunc', '--format', format])).split('\n').filter(Boolean)
  const ours = rows
    .map((row) => row.split('\t'))
    .filter(([, , , name = '', image = '']) => image.startsWith('mcp-orchestrator') || name.startsWith('mcp-sandbox-'))
  return new Map(
    ours.map(([id = '', server = '', status = '', name, image]) => {
      const line = [image, name, status, server].join(' ').trim()
      return [id, { line, isUp: status.startsWith('Up'), isChild: server !== '' }]
    })
  )
}

/** One line for each new container that stays unused for a while. */
export async function containersLeftSince(before: ReadonlyMap<string, unknown>): Promise<string[]> {
  const until = Date.now() + SETTLE_MS
  let left = [...(await listContainers())].filter(([id]) => !before.has(id))
  for (;;) {
    const now = await listContainers()
    const known = left.flatMap(([id]) => (now.has(id) ? [[id, now.get(id) as Found] as const] : []))
    const used = await Promise.all(known.map(([id, found]) => isUsed(id, found)))
    left = known.filter((_, at) => !used[at]).map(([id, found]) => [id, found])
    if (left.length === 0 || Date.now() > until) return left.map(([, { line }]) => line)
    await delay(LOOK_EVERY_MS)
  }
}

/** The workspace server in a sandbox runs as long as its owner is connected. */
async function isUsed(id: string, { isUp, isChild }: Found): Promise<boolean> {
  if (!isUp || isChild) return isUp
  return /^sandbox --epoch /m.test(await docker(['top', id, '-eo', 'args']))
}

async function docker(args: string[]): Promise<string> {
  const { stdout } = await run('docker', args, { timeout: 30_000 }).catch(() => ({ stdout: '' }))
  return stdout
}
