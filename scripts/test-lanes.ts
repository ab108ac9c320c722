/**
 * All tests: the unit tests over every core, then two lanes beside each other, those that share the engine and those that
 * don't. What the second lane says comes after the first, in one piece.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs')
const running = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const child of running) child.kill(signal)
    process.exitCode = 130
  })
}

async function run(project: string, later?: Buffer[]): Promise<number> {
  if (process.exitCode) return 1
  const stdio = later ? 'pipe' : 'inherit'
  const child = spawn(process.execPath, [vitest, 'run', '--project', project], { stdio: ['ignore', stdio, stdio] })
  running.add(child)
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data: Buffer) => later?.push(data))
  const [code] = await once(child, 'close')
  running.delete(child)
  return code ?? 1
}

const said: Buffer[] = []
const codes = [await run('unit'), ...(await Promise.all([run('engine'), run('apart', said)]))]
process.stdout.write(Buffer.concat(said))
process.exitCode ||= Math.max(...codes)
