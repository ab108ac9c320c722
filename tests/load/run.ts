/** `npm run test:load -- [--sessions 100] [--seconds 600] [--report]`: holds sessions at work; with `--report` writes docs/LOAD.md and its picture. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { stopServers } from '../support/serve.ts'
import { load } from './load.ts'
import { toMarkdown, toSvg, verdict } from './report.ts'

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '600' },
    report: { type: 'boolean', default: false }
  }
})
// Its server and a hundred sandboxes must not outlive it.
const putAway = () => void stopServers().finally(() => process.exit(130))
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, putAway)
const run = await load({
  sessions: Number(values.sessions),
  seconds: Number(values.seconds),
  say: (line) => process.stderr.write(`${line}\n`)
}).finally(stopServers)
if (values.report) {
  writeFileSync(join(packageRoot(), 'docs/LOAD.md'), toMarkdown(run, 'pictures/load.svg'))
  writeFileSync(join(packageRoot(), 'docs/pictures/load.svg'), toSvg(run))
}
const found = verdict(run)
process.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
for (const error of run.errors.slice(0, 20)) process.stdout.write(`${error}\n`)
const holds = found.errors === 0 && found.callP99 < 10 * found.callP50 && found.memoryGrowth < 0.1
process.exit(holds ? 0 : 1)
