import { environmentNames, type SecretSource, secretNames } from '../placeholders.ts'
import { type ServerEntry, valuesOf } from '../server-entry.ts'

export interface MissingValue {
  name: string
  kind: 'secret' | 'env'
  servers: string[]
}

/** The values that these servers need to start and that are not set anywhere yet. */
export function missingValues(entries: ServerEntry[], source: SecretSource): MissingValue[] {
  const found = new Map<string, MissingValue>()
  const add = (kind: MissingValue['kind'], name: string, server: string) => {
    const missing = found.get(`${kind}:${name}`) ?? { name, kind, servers: [] }
    missing.servers.push(server)
    found.set(`${kind}:${name}`, missing)
  }
  for (const entry of entries) {
    const values = valuesOf(entry)
    for (const name of secretNames(values)) if (source.secret(name) === undefined) add('secret', name, entry.name)
    for (const name of environmentNames(values)) if (source.env(name) === undefined) add('env', name, entry.name)
  }
  return [...found.values()]
}
