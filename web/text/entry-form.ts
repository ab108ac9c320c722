/**
 * An entry of the registry as a form. Every field is text, as the person sees it. What the person has not changed goes back exactly as
 * it was, so nothing that the form can't show is lost.
 */
type Entry = Record<string, unknown>

export interface EntryValue {
  name: string
  /** Null: a value that is hidden and kept. */
  value: string | null
}

export interface EntryForm {
  name: string
  kind: 'local' | 'remote'
  isEnabled: boolean
  command: string
  args: string
  cwd: string
  url: string
  /** Variables or headers. */
  values: EntryValue[]
  description: string
  keywords: string
  examples: string
  alternatives: string
  isSandboxed: boolean
  image: string
  network: string
  folders: string
  memoryMb: string
  cpus: string
  startMs: string
  listMs: string
  callMs: string
  idleSeconds: string
  instances: string
}

/** `entry` may contain anything. */
export function formOf(name: string, entry: Entry): EntryForm {
  const kind = entry.command === undefined ? 'remote' : 'local'
  const sandbox = record(entry.sandbox)
  const { timeoutMs } = entry
  const timeouts = typeof timeoutMs === 'number' ? { start: timeoutMs, list: timeoutMs, call: timeoutMs } : timeoutMs
  const { start, list, call } = record(timeouts)
  return {
    name,
    kind,
    isEnabled: entry.enabled !== false && entry.disabled !== true,
    command: text(entry.command),
    args: argsText(entry.args),
    cwd: text(entry.cwd),
    url: text(entry.url ?? entry.serverUrl),
    values: Object.entries(record(kind === 'local' ? entry.env : entry.headers)).map(([name, value]) => {
      return { name, value: value === null ? null : text(value) }
    }),
    description: text(entry.description),
    keywords: lines(entry.keywords),
    examples: lines(entry.examples),
    alternatives: lines(entry.alternatives),
    isSandboxed: entry.sandbox !== undefined && entry.sandbox !== null && entry.sandbox !== false,
    image: text(sandbox.image),
    network: lines(sandbox.network),
    folders: lines(sandbox.folders),
    memoryMb: text(sandbox.memoryMb),
    cpus: text(sandbox.cpus),
    startMs: text(start),
    listMs: text(list),
    callMs: text(call),
    idleSeconds: text(entry.idleSeconds),
    instances: text(entry.instances)
  }
}

/** The keys of an entry that the form sets; undefined leaves one out. */
const KEYS: Record<string, (form: EntryForm) => unknown> = {
  command: (form) => (form.kind === 'local' ? form.command.trim() : undefined),
  args: (form) => (form.kind === 'local' ? some(argsOf(form.args)) : undefined),
  cwd: (form) => (form.kind === 'local' ? word(form.cwd) : undefined),
  env: (form) => (form.kind === 'local' ? valuesOf(form) : undefined),
  sandbox: (form) => (form.kind === 'local' && form.isSandboxed ? sandboxOf(form) : undefined),
  url: (form) => (form.kind === 'remote' ? form.url.trim() : undefined),
  headers: (form) => (form.kind === 'remote' ? valuesOf(form) : undefined),
  enabled: (form) => (form.isEnabled ? undefined : false),
  description: (form) => word(form.description),
  keywords: (form) => some(linesOf(form.keywords)),
  examples: (form) => some(linesOf(form.examples)),
  alternatives: (form) => some(linesOf(form.alternatives)),
  timeoutMs: (form) => filled({ start: number(form.startMs), list: number(form.listMs), call: number(form.callMs) }),
  idleSeconds: (form) => number(form.idleSeconds),
  instances: (form) => number(form.instances)
}
/** Other spellings of a key, which would contradict it. */
const ALIASES: Record<string, string> = { url: 'serverUrl', enabled: 'disabled' }

/** The entry with the person's changes. The server validates it. */
export function entryFrom(form: EntryForm, draft: Entry): Entry {
  const original = formOf(form.name, draft)
  const entry = { ...draft }
  for (const [key, of] of Object.entries(KEYS)) {
    const now = of(form)
    if (JSON.stringify(now) === JSON.stringify(of(original))) continue
    delete entry[ALIASES[key] ?? key]
    if (now === undefined) delete entry[key]
    else entry[key] = now
  }
  if (form.kind === original.kind) return entry
  const { type: _type, transport: _transport, ...others } = entry
  return others
}

function valuesOf({ values }: EntryForm): Entry | undefined {
  const named = values.filter(({ name }) => name.trim() !== '')
  return named.length === 0 ? undefined : Object.fromEntries(named.map(({ name, value }) => [name.trim(), value]))
}

function sandboxOf(form: EntryForm): Entry {
  const { image, network, folders, memoryMb, cpus } = form
  const hosts = some(linesOf(network))
  return (
    filled({
      image: word(image),
      network: hosts,
      folders: some(linesOf(folders)),
      memoryMb: number(memoryMb),
      cpus: number(cpus)
    }) ?? {}
  )
}

/** One argument per line, or a JSON list if a line can't hold one of them. */
function argsText(args: unknown): string {
  const words = Array.isArray(args) ? args.map(text) : []
  const fits = words.every((arg) => arg !== '' && !arg.includes('\n')) && !words[0]?.startsWith('[')
  return fits ? words.join('\n') : JSON.stringify(words, null, 2)
}

function argsOf(field: string): string[] {
  if (field.trimStart().startsWith('[')) {
    try {
      const list: unknown = JSON.parse(field)
      if (Array.isArray(list)) return list.map(text)
    } catch {
      // An argument that begins like a list.
    }
  }
  return field.split('\n').filter((line) => line !== '')
}

const record = (value: unknown): Entry =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Entry) : {}
const text = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? String(value) : ''
const lines = (value: unknown): string => (Array.isArray(value) ? value.map(text).join('\n') : '')
const linesOf = (field: string): string[] => field.split('\n').flatMap((line) => line.trim() || [])
const word = (field: string): string | undefined => field.trim() || undefined
const some = <T>(list: T[]): T[] | undefined => (list.length > 0 ? list : undefined)
/** Text that is no number goes to the server, which says so. */
const number = (field: string): number | string | undefined => {
  const trimmed = String(field).trim()
  if (trimmed === '') return undefined
  return Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed
}
const filled = (values: Entry): Entry | undefined => {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return given.length > 0 ? Object.fromEntries(given) : undefined
}
