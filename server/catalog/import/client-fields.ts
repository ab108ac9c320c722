/** Fields of other clients: those that we have too are renamed; all others are removed, with a note for each. */
import { isRecord } from '../../lib/is-record.ts'
import { ENTRY_KEYS } from '../read-entry.ts'

type Raw = Record<string, unknown>

/** Field of another client → our field, which is used only if the entry does not have ours as well. */
const RENAMED: Record<string, string> = {
  httpUrl: 'url',
  baseUrl: 'url',
  environment: 'env',
  transportType: 'type',
  http_headers: 'headers'
}
const NEVER_RUN = ['disabledTools', 'excludeTools', 'disabled_tools']
const ONLY_RUN = ['tools', 'includeTools', 'enabledTools', 'enabled_tools']
const RULES_HERE = '"approval" says here which tools run without asking'
const WHY: Record<string, string> = {
  autoApprove: RULES_HERE,
  alwaysAllow: RULES_HERE,
  trust: RULES_HERE,
  timeout: 'write "timeoutMs", in milliseconds',
  oauth: 'log in with "mcp-orchestrator servers login NAME"',
  auth: 'log in with "mcp-orchestrator servers login NAME"',
  authProviderType: 'log in with "mcp-orchestrator servers login NAME"',
  headersHelper: 'write its headers under "headers"',
  sandboxEnabled: 'write "sandbox" to run it in a container',
  envFile: `write its variables under "env", with \${secret:NAME} for secrets`
}
/** Fields that add nothing to the rest of the entry. */
const IMPLIED: Record<string, unknown[]> = { source: ['custom'], isActive: [true], trust: [false] }
const LOCAL_ONLY = ['args', 'env', 'cwd', 'sandbox']
const REMOTE_ONLY = ['headers']

export interface Fields {
  raw: Raw
  /** Sentences without the full stop. */
  notes: string[]
}

export function translateFields(theirs: Raw, client: string | undefined): Fields {
  const notes: string[] = []
  let raw = renamed(flattened(theirs))
  if (client === 'Gemini CLI' && theirs.url !== undefined && theirs.httpUrl === undefined && raw.type === undefined)
    raw = { ...raw, type: 'sse' }
  const { isActive } = raw
  if (isActive === false) raw = without({ ...raw, disabled: true }, ['isActive'])
  const rules = toolRules(raw)
  if (rules) notes.push(rules.note)
  raw = without({ ...raw, ...(rules ? { approval: rules.approval } : {}) }, [...NEVER_RUN, ...ONLY_RUN])
  const timeout = timeoutOf(raw.timeout, client)
  if (timeout !== undefined && raw.timeoutMs === undefined)
    raw = without({ ...raw, timeoutMs: { call: timeout } }, ['timeout'])
  const odd = Object.keys(raw).filter((key) => !ENTRY_KEYS.has(key) || key in WHY)
  notes.push(...odd.filter((key) => !isEmpty(raw[key]) && !IMPLIED[key]?.includes(raw[key])).map(notTaken))
  raw = without(raw, odd)
  const isRemote = (raw.url ?? raw.serverUrl) !== undefined && raw.command === undefined
  const unfit = (isRemote ? LOCAL_ONLY : REMOTE_ONLY).filter((key) => raw[key] !== undefined)
  const kind = isRemote ? 'remote' : 'local'
  notes.push(
    ...unfit
      .filter((key) => !isEmpty(raw[key]))
      .map((key) => `"${key}" is not taken over: a ${kind} server has no use for it`)
  )
  return { raw: without(raw, unfit), notes }
}

function notTaken(key: string): string {
  return `"${key}" is not taken over: ${WHY[key] ?? 'it means nothing here'}`
}

/** Zed had `command: {path, args, env}`, and opencode has the whole command line as a list. */
function flattened(raw: Raw): Raw {
  const { command, ...rest } = raw
  if (isRecord(command)) {
    const { path, ...more } = command
    return { ...rest, ...more, ...(path === undefined ? {} : { command: path }) }
  }
  if (!Array.isArray(command)) return raw
  const [first, ...words] = command
  return { ...rest, command: first, args: [...words, ...(Array.isArray(raw.args) ? raw.args : [])] }
}

function renamed(raw: Raw): Raw {
  const result = { ...raw }
  for (const [theirs, ours] of Object.entries(RENAMED)) {
    if (result[theirs] === undefined) continue
    // Gemini CLI prefers `httpUrl` to `url`.
    if (result[ours] !== undefined && theirs !== 'httpUrl') continue
    result[ours] = result[theirs]
    delete result[theirs]
  }
  return result
}

/** A tool that a client never ran must not run here. */
function toolRules(raw: Raw): { approval: Raw; note: string } | undefined {
  const listOf = (keys: string[]) =>
    keys.flatMap((key) => {
      const value = raw[key]
      return Array.isArray(value) ? value.filter((name) => typeof name === 'string' && name !== '') : []
    })
  const never = listOf(NEVER_RUN)
  const only = ONLY_RUN.some((key) => Array.isArray(raw[key])) ? listOf(ONLY_RUN) : ['*']
  if (never.length === 0 && only.includes('*')) return
  const some = only.includes('*')
    ? []
    : [['*', 'deny'], ...only.filter((name) => !never.includes(name)).map((name) => [name, 'ask'])]
  const approval = {
    ...(isRecord(raw.approval) ? raw.approval : {}),
    ...Object.fromEntries([...some, ...never.map((name) => [name, 'deny'])])
  }
  const note = some.length === 0 ? `${never.join(', ')} may not be called` : `only ${only.join(', ')} may be called`
  return { approval, note: `${note}, as in the client: see "approval"` }
}

/** Clients use different units. */
function timeoutOf(value: unknown, client: string | undefined): number | undefined {
  if (typeof value !== 'number' || value < 1) return
  if (client === 'Gemini CLI' || client === 'LibreChat') return value
  return client === 'Cline' ? value * 1000 : undefined
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  return value === undefined || value === null || value === '' || (isRecord(value) && Object.keys(value).length === 0)
}

function without(raw: Raw, keys: string[]): Raw {
  return Object.fromEntries(Object.entries(raw).filter(([key]) => !keys.includes(key)))
}
