import { parseEnv } from 'node:util'
import { AppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import { openCredentials } from '../credentials.ts'
import { editFile } from '../edit-file.ts'
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

/** Adds the secrets in the file's own format, in one step. A name that already has another value is not changed. */
export function storeSecrets(file: string, secrets: Map<string, string>): Promise<void> {
  return editFile(file, (before = '') => {
    // The file must meet the same requirements as for using it. The environment does not count.
    const known = openCredentials({ file, environment: {} }).source()
    const fresh = [...secrets].filter(([name]) => known.secret(name) === undefined)
    const taken = [...secrets].find(([name, value]) => ![undefined, value].includes(known.secret(name)))
    if (taken) {
      const message = `The credentials file has another secret called ${taken[0]}: rename one of them.`
      throw new AppError('conflict', 'secret_exists', message)
    }
    const isJson = before.trimStart().startsWith('{')
    return isJson ? addMembers(before, fresh) : appendLines(before, fresh)
  })
}

function addMembers(before: string, fresh: [string, string][]): string {
  return `${JSON.stringify({ ...JSON.parse(before), ...Object.fromEntries(fresh) }, null, 2)}\n`
}

function appendLines(before: string, fresh: [string, string][]): string {
  const lines = fresh.map(([name, value]) => {
    const line = ["'", '`', '"']
      .map((quote) => `${name}=${quote}${value}${quote}`)
      .find((each) => parseEnv(each)[name] === value)
    if (line !== undefined) return line
    const message = `${name} can't be written as a line of the credentials file: make that file JSON, or write it by hand.`
    throw new AppError('invalid', 'credentials_unreadable', message)
  })
  return [before.trimEnd(), ...lines, ''].join('\n').trimStart()
}
