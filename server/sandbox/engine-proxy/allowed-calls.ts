/** The calls of the Docker API that the orchestrator needs. Every other call is refused. */
import { isRecord } from '../../lib/is-record.ts'
import { LABEL } from '../docker/engine/container-spec.ts'

interface Address {
  /** The path before and after the id of the container or exec. For `read` and `create`, `before` is the whole path. */
  before: string
  after: string
  /** Rebuilt from the parsed parameters, so that it has no duplicate parameters and no other separators. */
  query: string
}

export type Call = Address &
  (
    | { /** Reads information about the engine and changes nothing. */ kind: 'read' }
    | { kind: 'create' }
    /** The proxy answers this itself and leaves out what is not needed. */
    | { kind: 'image'; id: string }
    /** About one container, which must be ours. */
    | { kind: 'container'; id: string; stream: boolean }
    | { kind: 'exec-create'; id: string }
    | { kind: 'exec'; id: string; stream: boolean }
  )

type Kind =
  | { kind: 'read' | 'create' }
  | { kind: 'container' | 'exec'; id: string; stream: boolean }
  | { kind: 'exec-create' | 'image'; id: string }

/** Returns the value to pass on, or null if the parameter may not have this value. */
type Parameter = (value: string) => string | null

interface Route {
  method: string
  path: RegExp
  kind: (id: string) => Kind
  parameters?: Record<string, Parameter>
  /** A required parameter. */
  needs?: string
}

/** The API of Docker 20.10. Our client names no version; older versions accept more in a call than is checked here. */
const OLDEST_MINOR = 41
const ID = '([a-zA-Z0-9][a-zA-Z0-9_.-]{0,127})'

const flag: Parameter = (value) => (/^(1|0|true|false)$/.test(value) ? value : null)
const matching =
  (pattern: RegExp): Parameter =>
  (value) =>
    pattern.test(value) ? value : null
/**
 * Only our own names: the engine also reads a name as the beginning of an id, so a container named like another one's id would be
 * found in its place. None of our names can be an id, because ids contain no "m" and no "-".
 */
const ownName = matching(/^mcp-[a-zA-Z0-9_.-]{1,120}$/)

const ABOUT_CONTAINER = (id: string): Kind => ({ kind: 'container', id, stream: false })
const READ = (): Kind => ({ kind: 'read' })

const ROUTES: Route[] = [
  { method: 'GET', path: /^\/_ping$/, kind: READ },
  { method: 'HEAD', path: /^\/_ping$/, kind: READ },
  { method: 'GET', path: /^\/version$/, kind: READ },
  { method: 'GET', path: /^\/info$/, kind: READ },
  { method: 'GET', path: /^\/images\/([\w./:@-]{1,255})\/json$/, kind: (id) => ({ kind: 'image', id }) },
  {
    method: 'GET',
    path: /^\/containers\/json$/,
    kind: READ,
    parameters: { all: flag, filters: ownContainersOnly },
    needs: 'filters'
  },
  { method: 'POST', path: /^\/containers\/create$/, kind: () => ({ kind: 'create' }), parameters: { name: ownName } },
  { method: 'GET', path: route('json'), kind: ABOUT_CONTAINER },
  // No parameters are allowed: one of them could name a checkpoint anywhere on the host to start from.
  { method: 'POST', path: route('(?:start|pause|unpause)'), kind: ABOUT_CONTAINER },
  { method: 'POST', path: route('stop'), kind: ABOUT_CONTAINER, parameters: { t: matching(/^\d{1,4}$/) } },
  { method: 'POST', path: route('kill'), kind: ABOUT_CONTAINER, parameters: { signal: matching(/^[A-Z0-9]{1,12}$/) } },
  { method: 'POST', path: route('wait'), kind: ABOUT_CONTAINER, parameters: { condition: matching(/^[a-z-]{1,20}$/) } },
  {
    method: 'POST',
    path: route('attach'),
    kind: (id) => ({ kind: 'container', id, stream: true }),
    // `hijack` comes from our client library; the engine ignores it.
    parameters: { stream: flag, stdin: flag, stdout: flag, stderr: flag, logs: flag, hijack: flag }
  },
  // `link` is not allowed: it would remove something other than the container.
  {
    method: 'DELETE',
    path: new RegExp(`^/containers/${ID}$`),
    kind: ABOUT_CONTAINER,
    parameters: { force: flag, v: flag }
  },
  { method: 'POST', path: route('exec'), kind: (id) => ({ kind: 'exec-create', id }) },
  { method: 'POST', path: new RegExp(`^/exec/${ID}/start$`), kind: (id) => ({ kind: 'exec', id, stream: true }) },
  { method: 'GET', path: new RegExp(`^/exec/${ID}/json$`), kind: (id) => ({ kind: 'exec', id, stream: false }) }
]

/** Returns null if the call is not allowed. The path is matched without decoding, because we never send an escaped path. */
export function readCall(method: string, url: string): Call | null {
  // Split at the first question mark, as the engine does: a second one is part of the query.
  const [, path = '', search = ''] = /^([^?]*)\??(.*)$/s.exec(url) ?? []
  const [version = '', minor = OLDEST_MINOR] = /^\/v1\.([1-9]\d{1,2})(?=\/)/.exec(path) ?? []
  if (Number(minor) < OLDEST_MINOR) return null
  const plain = path.slice(version.length)
  // The engine would normalize such a path and so read a different one.
  if (plain.split('/').some((part, at) => part === '..' || part === '.' || (part === '' && at > 0))) return null
  for (const { method: verb, path: pattern, kind, parameters = {}, needs } of ROUTES) {
    const match = verb === method ? pattern.exec(plain) : null
    if (!match) continue
    const query = readQuery(search, parameters)
    if (query === null || (needs !== undefined && !query.has(needs))) return null
    return { ...kind(match[1] ?? ''), ...addressOf(version, plain, match[1]), query: query.size > 0 ? `?${query}` : '' }
  }
  return null
}

/** The path to send to the engine. `id` is the full id of the container or exec that was checked. */
export function pathOf(call: Call, id = ''): string {
  return `${call.before}${id}${call.after}${call.query}`
}

function addressOf(version: string, plain: string, id: string | undefined): { before: string; after: string } {
  if (id === undefined) return { before: `${version}${plain}`, after: '' }
  const [, folder = '', , ...after] = plain.split('/')
  return { before: `${version}/${folder}/`, after: after.map((part) => `/${part}`).join('') }
}

/** Returns null if a parameter is unknown, repeated or has a value that is not allowed. */
function readQuery(search: string, parameters: Record<string, Parameter>): URLSearchParams | null {
  const kept = new URLSearchParams()
  for (const [name, value] of new URLSearchParams(search)) {
    const passed = Object.hasOwn(parameters, name) && !kept.has(name) ? (parameters[name]?.(value) ?? null) : null
    if (passed === null) return null
    kept.set(name, passed)
  }
  return kept
}

/** Allows only a list that filters by our label, so that callers can't see or query anything else on this engine. */
function ownContainersOnly(value: string): string | null {
  const filters = parseJson(value)
  if (!isRecord(filters)) return null
  const { label, status, ...others } = filters
  if (Object.keys(others).length > 0) return null
  const labels = namesIn(label)
  if (!labels.some((name) => name.startsWith(`${LABEL.app}=`))) return null
  return JSON.stringify({ label: labels, ...(status === undefined ? {} : { status: namesIn(status) }) })
}

/** The API accepts two forms: a list, and an object whose keys count whatever their values are. */
function namesIn(value: unknown): string[] {
  return (Array.isArray(value) ? value : Object.keys(Object(value))).map(String)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function route(end: string): RegExp {
  return new RegExp(`^/containers/${ID}/${end}$`)
}
