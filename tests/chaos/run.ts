/**
 * `npm run test:chaos -- [--seeds 20] [--from 1] [--seconds 180] [--seed N] [--fault NAME] [--bug NAME] [--apart] [--cluster]`: walks one seed
 * after the other and says which failed; `--seed` replays one. With `--apart`, instances share no folder, and the files are in a bucket.
 * With `--cluster`, sandboxes are pods.
 */
import { parseArgs } from 'node:util'
import { startClusterGround } from './cluster-ground.ts'
import { dockerGround, startEngine } from './docker-ground.ts'
import { walk } from './walk.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '180' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    sessions: { type: 'string', default: '6' },
    instances: { type: 'string', default: '2' },
    fault: { type: 'string' },
    bug: { type: 'string' },
    apart: { type: 'boolean' },
    cluster: { type: 'boolean' }
  }
})
const print = (line: string) => process.stdout.write(`${line}\n`)
const first = Number(values.seed ?? values.from)
const seeds =
  values.seed === undefined ? Array.from({ length: Number(values.seeds) }, (_, index) => first + index) : [first]
const failed: number[] = []
// A ground, a Redis and servers of its own must not outlive it.
const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interrupted.abort())
const ground = values.cluster ? await startClusterGround() : dockerGround(await startEngine())
try {
  for (const seed of seeds) {
    const { faults, messages, effects, violations } = await walk(ground, {
      seed,
      seconds: Number(values.seconds),
      sessions: Number(values.sessions),
      instances: Number(values.instances),
      fault: values.fault,
      bug: values.bug,
      isApart: values.apart,
      signal: interrupted.signal,
      say: (line) => process.stderr.write(`seed ${seed}: ${line}\n`)
    })
    const verdict = violations.length === 0 ? 'holds' : 'FAILED'
    print(`seed ${seed}: ${verdict}; ${faults.length} faults, ${messages} messages, ${effects} effects`)
    for (const violation of violations) print(`  ${violation}`)
    if (violations.length > 0) failed.push(seed)
    interrupted.signal.throwIfAborted()
  }
} catch (error) {
  if (!interrupted.signal.aborted) throw error
  print('Interrupted.')
} finally {
  await ground.dispose()
}
if (failed.length > 0) print(`Failed seeds: ${failed.join(', ')}. Replay one with: npm run test:chaos -- --seed N`)
process.exit(interrupted.signal.aborted ? 130 : failed.length > 0 ? 1 : 0)
