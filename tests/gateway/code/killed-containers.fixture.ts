/**
 * Loaded into a gateway before its own code (`--import`). Kills the containers of programs at the events of their logs, and notes all
 * containers in a file.
 */
import { execFileSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import Dockerode from 'dockerode'
import { DEFAULT_TIMES } from '../../../server/code/run-times.ts'
import { Database } from '../../../server/storage/embedded/database.ts'

const { NOTES = '' } = process.env

// A person decides at once.
Object.assign(DEFAULT_TIMES, { lingerMs: 20, pollMs: 20 })

const containers: string[] = []
const { createContainer } = Dockerode.prototype
Dockerode.prototype.createContainer = async function (this: Dockerode, ...given: Parameters<typeof createContainer>) {
  const container = await Reflect.apply(createContainer, this, given)
  containers.push(container.id)
  appendFileSync(`${NOTES}.containers`, `${container.id}\n`)
  return container
} as typeof createContainer

/** The numbers of the events of each run, in the order in which the runs began. */
const runs = new Map<string, number>()

function stored(runId: string): void {
  const count = (runs.get(runId) ?? 0) + 1
  runs.set(runId, count)
  // The first run loses its containers with its first event, the second with its second event, and so on.
  if ([...runs.keys()].indexOf(runId) + 1 === count) killContainers()
}

function killContainers(): void {
  for (const id of containers.splice(0)) {
    try {
      execFileSync('docker', ['kill', id], { stdio: 'ignore' })
    } catch {
      // It has ended already.
    }
  }
}

const { run } = Database.prototype
Database.prototype.run = function (this: Database, ...[sql, ...values]: Parameters<typeof run>) {
  const [log] = values
  if (sql.startsWith('INSERT INTO events') && String(log).startsWith('code-run:')) stored(String(log))
  return Reflect.apply(run, this, [sql, ...values])
}
