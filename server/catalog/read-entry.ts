import { createHash } from 'node:crypto'
import { hasHidden } from '../../contract/hidden-characters.ts'
import { looksLikeOwnSource } from '../../contract/own-sources.ts'
import { type ApprovalRule, isApprovalRule } from '../../contract/servers/approval-rule.ts'
import { isRecord } from '../lib/is-record.ts'
import { foldName } from '../lib/near-names.ts'
import { wordSet } from '../lib/word-set.ts'
import { EntryProblem, flag, number, onlyKeys, optional, required, text, textMap, texts } from './entry-values.ts'
import { hasPlaceholder } from './placeholders.ts'
import { readSandbox, sharedFolder } from './read-sandbox.ts'
import {
  DEFAULT_IDLE_MS,
  DEFAULT_TIMEOUTS,
  type EntryBase,
  type OperationTimeouts,
  type ServerEntry
} from './server-entry.ts'

type Raw = Record<string, unknown>

/** Our own keys, those of the clients whose files are pasted, and those that only matter to such clients. */
export const ENTRY_KEYS =
  wordSet(`command args env cwd url serverUrl headers type transport disabled enabled description keywords examples sandbox
   timeoutMs idleSeconds instances alternatives approval readOnly autoApprove alwaysAllow disabledTools`)
const MAX_MS = 86_400_000
const NO_URL = { protocol: '', username: '', password: '' }
/** Addresses are shown and logged, and `fetch` refuses one with a password in it. */
const PASSWORD_IN_URL = `must hold no user or password: put it into an "Authorization" header with \${secret:NAME}`

export function unknownKeys(raw: Raw): string[] {
  return Object.keys(raw).filter((key) => !ENTRY_KEYS.has(key))
}

/** Throws EntryProblem. */
export function readEntry(name: string, raw: unknown, line: number): ServerEntry {
  if (!isRecord(raw)) throw new EntryProblem([], 'must be an object')
  if (name.length === 0 || name.length > 100 || hasHidden(name, 'prose') || /[\n\t]/.test(name)) {
    throw new EntryProblem([], 'a server needs a name of 1 to 100 printable characters')
  }
  if (looksLikeOwnSource(foldName(name))) {
    throw new EntryProblem([], 'this name is kept for MCP Orchestrator itself: give the server another one')
  }
  const base = readBase(name, raw, line)
  const url = optional(raw, raw.url === undefined ? 'serverUrl' : 'url', text)
  if ((url === undefined) === (raw.command === undefined)) {
    throw new EntryProblem([], 'needs either "command" (a local server) or "url" (a remote one)')
  }
  const entry: ServerEntry = url === undefined ? readLocal(base, raw) : readRemote(base, raw, url)
  return { ...entry, fingerprint: fingerprintOf(entry) }
}

function readLocal(base: EntryBase, raw: Raw): ServerEntry {
  const command = required(raw, 'command', text)
  const args = optional(raw, 'args', texts) ?? []
  for (const [index, word] of [command, ...args].entries()) {
    if (!hasPlaceholder(word)) continue
    const path = index === 0 ? ['command'] : ['args', String(index - 1)]
    throw new EntryProblem(path, 'a command line is public: fill placeholders in "env" instead')
  }
  const sandbox = raw.sandbox === false ? undefined : optional(raw, 'sandbox', readSandbox)
  const cwd = optional(raw, 'cwd', sandbox ? sharedFolder : text)
  return {
    ...base,
    kind: 'local',
    command,
    args,
    env: optional(raw, 'env', textMap) ?? {},
    ...(cwd === undefined ? {} : { cwd }),
    ...(sandbox === undefined ? {} : { sandbox })
  }
}

function readRemote(base: EntryBase, raw: Raw, url: string): ServerEntry {
  const { protocol, username, password } = URL.canParse(url) ? new URL(url) : NO_URL
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new EntryProblem(['url'], 'must begin with http:// or https://')
  if (hasPlaceholder(url))
    throw new EntryProblem(['url'], 'an address is logged: fill placeholders in "headers" instead')
  if (username !== '' || password !== '') throw new EntryProblem(['url'], PASSWORD_IN_URL)
  const sse = raw.type === 'sse' || raw.transport === 'sse'
  return { ...base, kind: 'remote', url, headers: optional(raw, 'headers', textMap) ?? {}, sse }
}

function readBase(name: string, raw: Raw, line: number): EntryBase {
  const description = optional(raw, 'description', text)
  const seconds = optional(raw, 'idleSeconds', number(0, 86_400))
  return {
    name,
    line,
    enabled: (optional(raw, 'enabled', flag) ?? true) && !(optional(raw, 'disabled', flag) ?? false),
    ...(description === undefined ? {} : { description }),
    keywords: optional(raw, 'keywords', texts) ?? [],
    examples: optional(raw, 'examples', texts) ?? [],
    timeouts: optional(raw, 'timeoutMs', readTimeouts) ?? DEFAULT_TIMEOUTS,
    idleMs: seconds === undefined ? DEFAULT_IDLE_MS : seconds * 1000,
    instances: optional(raw, 'instances', number(1, 16)) ?? 1,
    alternatives: optional(raw, 'alternatives', texts) ?? [],
    approval: optional(raw, 'approval', readApproval) ?? {},
    readOnly: optional(raw, 'readOnly', texts) ?? [],
    fingerprint: ''
  }
}

function readTimeouts(value: unknown, path: string[]): OperationTimeouts {
  const read = number(1, MAX_MS)
  if (!isRecord(value)) {
    const ms = read(value, path)
    return { startMs: ms, listMs: ms, callMs: ms }
  }
  onlyKeys(value, ['start', 'list', 'call'], path)
  const of = (key: string, fallback: number) => (value[key] === undefined ? fallback : read(value[key], [...path, key]))
  const { startMs, listMs, callMs } = DEFAULT_TIMEOUTS
  return { startMs: of('start', startMs), listMs: of('list', listMs), callMs: of('call', callMs) }
}

function readApproval(value: unknown, path: string[]): Record<string, ApprovalRule> {
  return Object.fromEntries(
    Object.entries(textMap(value, path)).map(([glob, rule]) => {
      if (isApprovalRule(rule)) return [glob, rule]
      throw new EntryProblem([...path, glob], 'must be "allow", "ask" or "deny"')
    })
  )
}

function fingerprintOf(entry: ServerEntry): string {
  const { kind, timeouts, idleMs, instances } = entry
  const how =
    entry.kind === 'local'
      ? [entry.command, entry.args, entry.env, entry.cwd, entry.sandbox]
      : [entry.url, entry.headers, entry.sse]
  return createHash('sha256')
    .update(JSON.stringify([kind, how, timeouts, idleMs, instances]))
    .digest('hex')
    .slice(0, 32)
}
