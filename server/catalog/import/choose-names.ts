import { basename } from 'node:path'
import { alikeName } from '../../lib/near-names.ts'
import { maskedTarget } from '../describe-target.ts'
import { EntryProblem } from '../entry-values.ts'
import { readEntry } from '../read-entry.ts'
import type { ServerEntry } from '../server-entry.ts'
import type { FoundServer } from './client-files.ts'

/**
 * Decides which of the found servers are added, and under which names. The first server with a name keeps it. If another one
 * belongs to a single project, the project's name is added to its name; otherwise it is left out. Servers that the registry already
 * has are left out too. Everything left out is reported.
 */
export function chooseNames(
  found: FoundServer[],
  registry: ReadonlyMap<string, ServerEntry>
): { fresh: FoundServer[]; problems: string[] } {
  const fresh = new Map<string, FoundServer>()
  const problems: string[] = []
  for (const server of found) {
    const { name, file, project } = server
    const entryOf = (wanted: string) => named(registry, wanted) ?? named(fresh, wanted)?.entry
    const isSame = (wanted: string) => entryOf(wanted)?.fingerprint === server.entry.fingerprint
    if (isSame(name)) continue
    if (entryOf(name) === undefined) fresh.set(name, server)
    else if (project !== undefined) {
      const preferred = `${name}-${basename(project)}`.slice(0, 90)
      let other = preferred
      for (let number = 2; entryOf(other) !== undefined && !isSame(other); number++) other = `${preferred}-${number}`
      if (isSame(other)) continue
      const notes = [...server.notes, `it is called "${other}" here, because there is another "${name}"`]
      try {
        fresh.set(other, { ...server, name: other, entry: readEntry(other, server.raw, 0), notes })
      } catch (error) {
        if (!(error instanceof EntryProblem)) throw error
        problems.push(`${file}: server "${name}" is left out: as "${other}", ${error.sentence}.`)
      }
    } else {
      const other = named(fresh, name)
      const where = other === undefined ? 'mcp.json' : other.file
      const runs = maskedTarget(other?.entry ?? named(registry, name) ?? server.entry)
      problems.push(`${file}: server "${name}" is left out: ${where} has another one of this name (${runs}).`)
    }
  }
  return { fresh: [...fresh.values()], problems }
}

function named<T>(known: ReadonlyMap<string, T>, wanted: string): T | undefined {
  const name = alikeName(known.keys(), wanted)
  return name === undefined ? undefined : known.get(name)
}
