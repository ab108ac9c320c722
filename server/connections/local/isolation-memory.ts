/**
 * Remembers in DATA_DIR how far servers could be isolated on a machine. The folder is hidden from servers. It may be on a disk that several
 * machines use, so each has its own line.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'

/** A container often gets a new host name with every start. */
const MAX_MACHINES = 50

export function isolationMemory(dataDir: string): string {
  return join(dataDir, 'isolation.json')
}

export function recallExtent(file: string): string | undefined {
  return read(file).find(([host]) => host === hostname())?.[1]
}

export function rememberExtent(file: string, extent: string): void {
  const known = read(file)
  if (known.some(([host, name]) => host === hostname() && name === extent)) return
  const others = known.filter(([host]) => host !== hostname()).slice(1 - MAX_MACHINES)
  try {
    const draft = `${file}.${process.pid}`
    writeFileSync(draft, `${JSON.stringify(Object.fromEntries([...others, [hostname(), extent]]))}\n`, { mode: 0o600 })
    renameSync(draft, file)
  } catch {
    // A folder that can't be written to remembers nothing.
  }
}

function read(file: string): [string, string][] {
  try {
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof found !== 'object' || found === null) return []
    return Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  } catch {
    return []
  }
}
