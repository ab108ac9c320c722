import { AppError } from '../lib/errors.ts'

const PLACEHOLDER = /(?<!\$)\$\{(secret|env):([A-Za-z_][A-Za-z0-9_.-]*)\}/g
/** An escaped `${`. */
const ESCAPED = /\$\$\{/g

export interface SecretSource {
  /** Returns undefined if there is no value with this name. */
  secret(name: string): string | undefined
  env(name: string): string | undefined
  /** Whether this is one of our own settings, which servers get only from the credentials file. */
  isOurs?(name: string): boolean
}

export function hasPlaceholder(text: string): boolean {
  return text.search(PLACEHOLDER) !== -1
}

/** The secrets that these texts refer to. */
export function secretNames(texts: Record<string, string>): string[] {
  return namesOf('secret', texts)
}

/** The variables of our own environment that these texts refer to with `${env:NAME}`. */
export function environmentNames(texts: Record<string, string>): string[] {
  return namesOf('env', texts)
}

function namesOf(wanted: 'secret' | 'env', texts: Record<string, string>): string[] {
  const found = Object.values(texts).flatMap((text) => [...text.matchAll(PLACEHOLDER)])
  return [...new Set(found.flatMap(([, kind, name]) => (kind === wanted && name !== undefined ? [name] : [])))]
}

/** The text consists of a placeholder only, so it reveals nothing. */
export function isPlaceholder(text: string): boolean {
  return /^\$\{(secret|env):[A-Za-z_][A-Za-z0-9_.-]*\}$/.test(text)
}

const UNFIT = { env: /\0/, headers: /[^\t\x20-\x7e\x80-\xff]/ }

export interface FilledTexts {
  values: Record<string, string>
  /** Values that must never be seen outside the child. */
  secrets: string[]
}

/** Fills the placeholders of a child's variables or headers. The error names the placeholder and the server, never a value. */
export function fillPlaceholders(
  server: string,
  texts: Record<string, string>,
  source: SecretSource,
  place: 'env' | 'headers' = 'env'
): FilledTexts {
  const secrets = new Set<string>()
  const values: Record<string, string> = {}
  for (const [key, text] of Object.entries(texts)) {
    // Piece by piece, so that the text of a secret is not treated as an escape.
    const pieces = text.split(/((?<!\$)\$\{(?:secret|env):[A-Za-z_][A-Za-z0-9_.-]*\})/)
    values[key] = pieces
      .map((piece) => {
        const [, kind = '', name = ''] = /^\$\{(secret|env):(.*)\}$/.exec(piece) ?? []
        if (kind === '') return piece.replace(ESCAPED, '${')
        const value = kind === 'secret' ? source.secret(name) : source.env(name)
        if (value === undefined)
          throw source.isOurs?.(name) ? refused(server, piece, name) : missing(server, piece, kind)
        // Node's own error message would quote it.
        if (UNFIT[place].test(value.trim())) throw unfit(server, piece, place)
        secrets.add(value)
        return value
      })
      .join('')
  }
  return { values, secrets: [...secrets].filter((secret) => secret.length > 0) }
}

function missing(server: string, placeholder: string, kind: string): AppError {
  const name = placeholder.slice(2, -1).replace(/^\w+:/, '')
  const where =
    kind === 'secret'
      ? `the credentials file or the environment: store it with "mcp-orchestrator servers secret ${name}"`
      : 'the environment'
  const message = `The server "${server}" needs ${placeholder}, which is not in ${where}.`
  return new AppError('unavailable', 'secret_missing', message, { details: { permanent: true } })
}

function refused(server: string, placeholder: string, name: string): AppError {
  const message = `The server "${server}" does not get ${placeholder} from the environment: it is a secret setting of this program. If the server needs a value with this name, store one with "mcp-orchestrator servers secret ${name}", and write \${secret:${name}}.`
  return new AppError('forbidden', 'secret_missing', message, { details: { permanent: true } })
}

function unfit(server: string, placeholder: string, place: 'env' | 'headers'): AppError {
  const what = place === 'env' ? 'a variable' : 'a header'
  const message = `The server "${server}" needs ${placeholder}, whose value has a character that ${what} can't have (such as NUL or a line break): correct it in the credentials file or the environment.`
  return new AppError('unavailable', 'secret_unusable', message, { details: { permanent: true } })
}
