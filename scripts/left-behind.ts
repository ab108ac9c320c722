/**
 * Finds the containers that a test run has left behind on the engine. Only images of this project count, so that other work on
 * the same engine does not.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The containers of this project's images, by id, each with a line that names it. Empty where no engine answers. */
export async function listContainers(): Promise<Map<string, string>> {
  const format = '{{.ID}}\t{{.Image}}\t{{.Names}}\t{{.Status}}\t{{.Label "mcp-orchestrator.server"}}'
  const { stdout } = await run('docker', ['ps', '--all', '--no-trunc', '--format', format], { timeout: 30_000 }).catch(
    () => ({ stdout: '' })
  )
  const rows = stdout.split('\n').filter(Boolean)
  const ours = rows
    .map((row) => row.split('\t'))
    .filter(([, image = '', name = '']) => image.startsWith('mcp-orchestrator') || name.startsWith('mcp-sandbox-'))
  return new Map(ours.map(([id = '', ...rest]) => [id, rest.join(' ').trim()]))
}

export async function containersSince(before: Map<string, string>): Promise<string[]> {
  const now = await listContainers()
  return [...now].filter(([id]) => !before.has(id)).map(([, line]) => line)
}
