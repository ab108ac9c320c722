import type { ServerTarget, ShownValue } from '../../contract/servers.ts'
import { isPlaceholder } from './placeholders.ts'
import type { ServerEntry } from './server-entry.ts'

/** The exact command or address: what a person has to see before it is run. Placeholders stay what they are. */
export function describeTarget(entry: ServerEntry): string {
  if (entry.kind === 'remote') return entry.url
  return [entry.command, ...entry.args]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(' ')
}

/** All that decides what is run and whether it is asked for; of values only those that are no secret. */
export function showTarget(entry: ServerEntry): ServerTarget & { target: string } {
  const local = entry.kind === 'local' ? entry : undefined
  return {
    name: entry.name,
    kind: entry.kind,
    target: describeTarget(entry),
    cwd: local?.cwd ?? null,
    env: showValues(local?.env ?? {}),
    headers: showValues(entry.kind === 'remote' ? entry.headers : {}),
    sandbox: local?.sandbox
      ? {
          image: local.sandbox.image ?? null,
          network: local.sandbox.network?.join(', ') || 'none',
          folders: local.sandbox.folders ?? []
        }
      : null,
    approval: entry.approval,
    enabled: entry.enabled,
    description: entry.description ?? null
  }
}

function showValues(values: Record<string, string>): ShownValue[] {
  return Object.entries(values).map(([name, value]) => {
    const placeholder = isPlaceholder(value) ? value : null
    return { name, placeholder, looksSecret: placeholder === null && looksSecret(name, value) }
  })
}

const SECRET_NAME = /key|token|secret|passw|pwd|auth|credential|cookie|private|bearer|session|signature|\bsig\b|jwt/i
/** `Authorization: Bearer …`, also with other schemes, and values that are known by their beginning. */
const SECRET_VALUE =
  /^((Bearer|Basic|Token|ApiKey|Api-Key|Key|Digest|Negotiate|DPoP|AWS4-HMAC-SHA256) |sk-|[prs]k_(live|test)_|gh[pousr]_|github_pat_|xox[a-z]-|AKIA|AIza|glpat-|npm_|hf_|pypi-|dop_v1_|SG\.|ya29\.|eyJ)/i

/** A password in a connection string: `postgres://user:password@host`, `…;Password=…`, and Go's form for MySQL. */
const CONNECTION_PASSWORDS = [
  /\b[a-z][a-z0-9+.-]{1,30}:\/\/[^\s/?#@:]{0,200}:[^\s/@]{1,500}@/i,
  /(^|[\s;?&])(password|passwd|pwd)\s{0,3}=\s{0,3}[^\s;&]/i,
  /(^|[\s=])[^\s:/@=]{1,200}:[^\s@]{1,500}@(tcp|unix)\(/
]

export function looksSecret(name: string, value: string): boolean {
  if (value.length < 4 || /\$\{/.test(value)) return false
  return [SECRET_VALUE, ...CONNECTION_PASSWORDS].some((known) => known.test(value)) || SECRET_NAME.test(name)
}
