/**
 * Runs all tests: the unit tests on every core, then the lanes of `vitest.config.ts` at the same time, because each of them waits more
 * than it computes. On a busy machine, or with TEST_LANES=in-turn, they run one after another. At the same time, only the first lane's
 * output is live; that of the others follows in one piece. Failures are repeated at the very end, because that is the part of a long
 * log that people keep and read. Containers that the tests left behind fail them too.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { whichCluster } from '../tests/fixtures/kubernetes/which-cluster.ts'
import { containersLeftSince, listContainers } from './left-behind.ts'

interface Lane {
  project: string
  code: number
  said: string
}

const vitest = join(import.meta.dirname, '../node_modules/vitest/vitest.mjs')
const running = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    for (const child of running) child.kill(signal)
    process.exitCode = 130
  })
}

async function run(project: string, { isLive = true, workers = 1 } = {}): Promise<Lane> {
  if (process.exitCode) return { project, code: 1, said: '' }
  const args = [vitest, 'run', '--project', project, `--maxWorkers=${workers}`]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  const said: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data: Buffer) => {
      said.push(data)
      if (isLive) process.stdout.write(data)
    })
  }
  const [code] = await once(child, 'close')
  running.delete(child)
  return { project, code: code ?? 1, said: Buffer.concat(said).toString() }
}

/** The runner prints all failures together, before its summary. */
function failuresIn(said: string): string {
  const text = stripVTControlCharacters(said)
  const at = text.search(/^⎯+ (Failed Suites|Failed Tests|Unhandled Errors)/m)
  return text.slice(at === -1 ? -3000 : at)
}

/** Whether others use this machine: our own unit tests raise the load by about one per core. */
function isBusy(): boolean {
  const [lastMinute = 0] = loadavg()
  return lastMinute > 3 * availableParallelism()
}

async function inTurn(): Promise<Lane[]> {
  process.stdout.write('The lanes run one after another.\n')
  return [await run('engine'), await run('page'), await run('views'), await run('gateway')]
}

async function atOnce(): Promise<Lane[]> {
  const [engine, ...others] = await Promise.all([
    run('engine'),
    run('page', { isLive: false }),
    run('views', { isLive: false }),
    run('gateway', { isLive: false })
  ])
  for (const { said } of others) process.stdout.write(said)
  return [engine, ...others]
}

process.stdout.write(`The contract of sandboxes on Kubernetes runs on ${whichCluster(process.env)}.\n`)
const before = await listContainers()
// By default the runner leaves out one core, which is half of two.
const unit = await run('unit', { workers: availableParallelism() })
const lanes = [unit, ...(process.env.TEST_LANES === 'in-turn' || isBusy() ? await inTurn() : await atOnce())]
for (const { project, code, said } of lanes) {
  if (code !== 0) process.stdout.write(`\n== failed: ${project}\n${failuresIn(said)}\n`)
}
const left = await containersLeftSince(before)
if (left.length > 0) process.stdout.write(`\n== failed: the tests left containers behind:\n${left.join('\n')}\n`)
process.exitCode ||= Math.max(...lanes.map(({ code }) => code), left.length > 0 ? 1 : 0)
