/**
 * Secrets that stand in `mcp.json` as plain text. People are warned of them, and they are removed from logs and errors like those that a
 * placeholder stands for.
 */
import type { ServerEntry } from './server-entry.ts'

const SECRET_NAME = /key|token|secret|passw|pwd|auth|credential|cookie|private|bearer|session|signature|\bsig\b|jwt/i
/** `Authorization: Bearer …`, also with other schemes, and values that are known by their beginning. */
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

/** `--token abc`, `--token=abc`, or a value that is known by its beginning. */
export function isSecretWord(word: string, at: number, words: string[]): boolean {
  const before = words[at - 1] ?? ''
  const [name = '', value = ''] = word.split('=', 2)
  return looksSecret(before.startsWith('-') ? before : '', word) || (value !== '' && looksSecret(name, value))
}

/** Finds a user and password, `?api_key=…`, or a long random part of the path, as some providers have it. */
export function secretsInUrl(address: string): string[] {
  const { username, password, searchParams, pathname, hash } = new URL(address)
  const query = [...searchParams, ...new URLSearchParams(hash.slice(1))].filter(
    ([name, value]) => looksSecret(name, value) || isRandom(value)
  )
  const parts = pathname.split('/').filter((part) => looksSecret('', part) || isRandom(part))
  return [username, password, ...query.map(([, value]) => value), ...parts].filter((part) => part !== '')
}

/** 24 characters or more with letters and digits mixed: no word. A UUID names things rather than proving anything. */
function isRandom(part: string): boolean {
  return (
    /^[\w.~-]{24,}$/.test(part) &&
    /\d/.test(part) &&
    /[A-Za-z]/.test(part) &&
    !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-/.test(part)
  )
}

/** Whether a person's sentence seems to name a secret: `password is hunter2`, or a word that is known by its form. */
export function mentionsSecret(sentence: string): boolean {
  if (/\b(password|passwd|passphrase|pwd|token|secret|pin|api[ _-]?key|key)\b(\s+is|\s*[:=]|\s+["'`])/i.test(sentence))
    return true
  return sentence.split(/[\s"'`,;()]+/).some((word) => looksSecret('', word) || isRandom(word))
}

/** The texts to remove from what a server's log and errors say. */
export function literalSecrets(entry: ServerEntry): string[] {
  const values = Object.entries(entry.kind === 'local' ? entry.env : entry.headers)
    .filter(([name, value]) => looksSecret(name, value))
    .flatMap(([, value]) => secretParts(value))
  if (entry.kind === 'remote') return [...values, ...secretsInUrl(entry.url)]
  return [...values, ...entry.args.filter(isSecretWord).flatMap(secretParts)]
}

/** A server may repeat the whole value or only the password in it, with or without the scheme or the flag before it. */
function secretParts(value: string): string[] {
  const passwords = CONNECTION_PASSWORDS.flatMap((form) => form.exec(value)?.groups?.password ?? [])
  const bare = /^(?:--?[\w-]+=|[A-Za-z][\w-]* )([\s\S]+)$/.exec(value)?.[1]
  return [value, ...passwords, ...passwords.map(decoded), ...(bare === undefined ? [] : [bare])]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
