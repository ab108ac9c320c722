import { isRecord } from '../../lib/is-record.ts'
import { looksSecret } from '../literal-secrets.ts'

type Raw = Record<string, unknown>

/** Replaces values that look like secrets in variables and headers by placeholders, and returns the secrets by name. */
export function takeSecretsOut(servers: Record<string, Raw>): {
  servers: Record<string, Raw>
  secrets: Map<string, string>
} {
  const secrets = new Map<string, string>()
  const placeholder = (server: string, name: string, value: string) => {
    const [, scheme = '', secret = ''] = /^((?:Bearer|Basic|Token|ApiKey|Api-Key|Key) )?([\s\S]*)$/i.exec(value) ?? []
    const wish = `${server}_${name}`
      .toUpperCase()
      .replace(/[^A-Z0-9]+/g, '_')
      .replace(/^(?![A-Z])/, '_')
    let key = wish
    for (let number = 2; secrets.has(key) && secrets.get(key) !== secret; number++) key = `${wish}_${number}`
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
