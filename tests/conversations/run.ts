/** `npm run test:conversations -- [--count 200] [--from 1] [--seed N]`: holds one conversation per seed and says which failed; `--seed` repeats one. */
import { parseArgs } from 'node:util'
import { converse } from './converse.ts'
import { House } from './house.ts'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '200' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' }
  }
})
const first = Number(values.seed ?? values.from)
const count = values.seed === undefined ? Number(values.count) : 1
const total = { conversations: 0, requests: 0, events: 0, done: {} as Record<string, number>, failed: [] as number[] }
const house = await House.open()
try {
  for (let seed = first; seed < first + count; seed++) {
    const { violations, requests, events, done } = await converse(house, seed)
    total.conversations += 1
    total.requests += requests
    total.events += events
    for (const [what, times] of Object.entries(done)) total.done[what] = (total.done[what] ?? 0) + times
    if (violations.length > 0) total.failed.push(seed)
    for (const violation of violations.slice(0, 3)) process.stderr.write(`seed ${seed}: ${violation}\n`)
  }
} finally {
  await house.close()
}
process.stdout.write(`${JSON.stringify(total, null, 2)}\n`)
process.exitCode = total.failed.length > 0 ? 1 : 0
