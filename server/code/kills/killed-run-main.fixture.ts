/** Starts the run, and kills this process with SIGKILL at the given event, before or after it is stored. */
import type { EventLog } from '../../storage/event-log.ts'
import { ASKER, CODE, openRuns } from './killed-run.fixture.ts'

const [dir = '', dieAt = '', when] = process.argv.slice(2)
let appends = 0

const { runs, calls } = await openRuns(dir, (events): EventLog => {
  const append: EventLog['append'] = async (id, added, options) => {
    const isLast = ++appends === Number(dieAt)
    if (isLast && when === 'before') process.kill(process.pid, 'SIGKILL')
    const stored = await events.append(id, added, options)
    if (isLast) process.kill(process.pid, 'SIGKILL')
    return stored
  }
  return new Proxy(events, { get: (target, name) => (name === 'append' ? append : Reflect.get(target, name, target)) })
})
const runId = await runs.start({ code: CODE, timeoutMs: 60_000, asker: ASKER, calls })
process.stdout.write(`${runId}\n`)
for (;;) {
  const { status } = await runs.report(runId, { owner: 'local', calls })
  if (status === 'ended') break
  await new Promise((resolve) => setTimeout(resolve, 5))
}
process.stdout.write(`${appends}\n`)
process.exit(0)
