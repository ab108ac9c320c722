/**
 * Finds secrets that are in `mcp.json` as plain text. We warn about them, and redact them in logs and errors like the values of
 * placeholders.
 */
import { type ServerEntry, valuesOf } from './server-entry.ts'

const SECRET_NAME = /key|token|secret|passw|pwd|auth|credential|cookie|private|bearer|session|signature|\bsig\b|jwt/i
/** `Authorization: Bearer …`, also with other schemes, and values that begin like known kinds of secrets. */
const SECRET_VALUE =
  /^((Bearer|Basic|Token|ApiKey|Api-Key|Key|Digest|Negotiate|DPoP|AWS4-HMAC-SHA256) |sk-|[prs]k_(live|test)_|gh[pousr]_|github_pat_|xox[a-z]-|AKIA|AIza|glpat-|npm_|hf_|pypi-|dop_v1_|SG\.|ya29\.|eyJ)/i

/** A password in a connection string: `postgres://user:password@host`, `…;Password=…`, and Go's form for MySQL. */
const CONNECTION_PASSWORDS = [
  /\b[a-z][a-z0-9+.-]{1,30}:\/\/[^\s/?#@:]{0,200}:(?<password>[^\s/@]{1,500})@/i,
  /(?:^|[\s;?&])(?:password|passwd|pwd)\s{0,3}=\s{0,3}(?<password>[^\s;&]+)/i,
  /(?:^|[\s=])[^\s:/@=]{1,200}:(?<password>[^\s@]{1,500})@(?:tcp|unix)\(/
]

export function looksSecret(name: string, value: string): boolean {
  if (value.length < 4 || /\$\{/.test(value)) return false
  return [SECRET_VALUE, ...CONNECTION_PASSWORDS].some((known) => known.test(value)) || SECRET_NAME.test(name)
}

/** `--token abc`, `--token=abc`, `TOKEN=abc`, `X-Token: abc`, or a value that begins like a known kind of secret. */
export function isSecretWord(word: string, at: number, words: string[]): boolean {
  const [flag = ''] = /^-[^=]*$/.exec(words[at - 1] ?? '') ?? []
  return looksSecret(word.startsWith('--') ? '' : flag, word) || wordValue(word) !== word
}

/** The secret in `--token=abc` and the like; any other word as it is. */
function wordValue(word: string): string {
  const { name = '', value = '' } = /^(?<name>[\w-]+(?=:\s)|[^=]*)(?:=|:\s+)(?<value>[\s\S]*)$/.exec(word)?.groups ?? {}
  return looksSecret(name, value) ? value : word
}

const MASK = '•••'

/** For `map` over the words of a command line: the same word with its secret masked. */
export function maskWord(word: string, at: number, words: string[]): string {
  if (!isSecretWord(word, at, words)) return word
  const passwords = passwordsIn(word)
  if (passwords.length > 0) return passwords.reduce((text, password) => text.replaceAll(password, MASK), word)
  return word.slice(0, -wordValue(word).length) + MASK
}

export function maskUrl(address: string): string {
  const secrets = secretsInUrl(address)
  const isSecret = (text: string) =>
    secrets.includes(decoded(text)) || secrets.includes(decoded(text.replaceAll('+', ' ')))
  const [, path = '', ...parameters] = /^([^?#]*)(\?[^#]*)?(#.*)?$/s.exec(address) ?? []
  const maskedPath = path.split('/').map((part) => (isSecret(part) ? MASK : part))
  const masked = parameters.map((text = '') =>
    text.replace(/([?#&][^=&]*=)([^&]*)/g, (whole, name, value) => (isSecret(value) ? `${name}${MASK}` : whole))
  )
  return [maskedPath.join('/'), ...masked].join('')
}

/** Finds a user and password, `?api_key=…`, or a long random part of the path, which some providers use as a key. */
export function secretsInUrl(address: string): string[] {
  const { username, password, searchParams, pathname, hash } = new URL(address)
  const query = [...searchParams, ...new URLSearchParams(hash.slice(1))].filter(
    ([name, value]) => looksSecret(name, value) || isRandom(value)
  )
  const parts = pathname.split('/').filter((part) => looksSecret('', part) || isRandom(part))
  return [username, password, ...query.map(([, value]) => value), ...parts].filter((part) => part !== '')
}

/** At least 24 characters with letters and digits mixed, so not a word. UUIDs don't count: they are names, not secrets. */
function isRandom(part: string): boolean {
  return (
    /^[\w.~-]{24,}$/.test(part) &&
    /\d/.test(part) &&
    /[A-Za-z]/.test(part) &&
    !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-/.test(part)
  )
}

/** Whether a person's sentence seems to contain a secret: `password is hunter2`, or a word in the form of a known kind of secret. */
export function mentionsSecret(sentence: string): boolean {
  if (/\b(password|passwd|passphrase|pwd|token|secret|pin|api[ _-]?key|key)\b(\s+is|\s*[:=]|\s+["'`])/i.test(sentence))
    return true
  return sentence.split(/[\s"'`,;()]+/).some((word) => looksSecret('', word) || isRandom(word))
}

/** The texts to redact in a server's log and errors. */
export function literalSecrets(entry: ServerEntry): string[] {
  const values = Object.entries(valuesOf(entry))
    .filter(([name, value]) => looksSecret(name, value))
    .flatMap(([, value]) => secretParts(value))
  if (entry.kind === 'remote') return [...values, ...secretsInUrl(entry.url)]
  return [...values, ...entry.args.filter(isSecretWord).flatMap((word) => [word, ...secretParts(wordValue(word))])]
}

/** A server may repeat the whole value or only the password in it, with or without the scheme before it. */
function secretParts(value: string): string[] {
  const passwords = passwordsIn(value)
  const bare = /^[A-Za-z][\w-]* ([\s\S]+)$/.exec(value)?.[1]
  return [value, ...passwords, ...passwords.map(decoded), ...(bare === undefined ? [] : [bare])]
}

function passwordsIn(text: string): string[] {
  return CONNECTION_PASSWORDS.flatMap((form) => form.exec(text)?.groups?.password ?? [])
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
