import { isRecord } from '../../lib/is-record.ts'
import { looksSecret } from '../literal-secrets.ts'
import { secretNames } from '../placeholders.ts'
import { type ServerEntry, valuesOf } from '../server-entry.ts'
import { freeSecretName } from './secret-names.ts'

type Raw = Record<string, unknown>

/** The secrets that entries use, except one of them. */
export function secretsInUse(entries: Iterable<ServerEntry>, except?: string): Set<string> {
  const others = [...entries].filter(({ name }) => name !== except)
  return new Set(others.flatMap((entry) => secretNames(valuesOf(entry))))
}

/**
 * Replaces values that look like secrets in variables and headers by placeholders, and returns the secrets by name. None gets a name
 * that another entry uses: that one would get this value.
 */
export function takeSecretsOut(
  servers: Record<string, Raw>,
  inUse: ReadonlySet<string>
): {
  servers: Record<string, Raw>
  secrets: Map<string, string>
} {
  const secrets = new Map<string, string>()
  const placeholder = (server: string, name: string, value: string) => {
    const [, scheme = '', secret = ''] = /^((?:Bearer|Basic|Token|ApiKey|Api-Key|Key) )?([\s\S]*)$/i.exec(value) ?? []
    const isOthers = (key: string) => inUse.has(key) || (secrets.has(key) && secrets.get(key) !== secret)
    const { key } = freeSecretName(server, name, isOthers)
    secrets.set(key, secret)
    return `${scheme}\${secret:${key}}`
  }
  const clean = (server: string, values: unknown) =>
    isRecord(values)
      ? Object.fromEntries(
          Object.entries(values).map(([name, value]) => {
            return [
              name,
              typeof value === 'string' && looksSecret(name, value) ? placeholder(server, name, value) : value
            ]
          })
        )
      : values
  const cleaned = Object.entries(servers).map(([server, raw]) => {
    const env = raw.env === undefined ? {} : { env: clean(server, raw.env) }
    const headers = raw.headers === undefined ? {} : { headers: clean(server, raw.headers) }
    return [server, { ...raw, ...env, ...headers }]
  })
  return { servers: Object.fromEntries(cleaned), secrets }
}
