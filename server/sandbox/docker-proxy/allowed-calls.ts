/** Which calls of the Docker API the orchestrator needs at all; every other one is refused, whatever it is. */
import { LABEL } from '../docker/container-spec.ts'

export type Call =
  /** Tells of the engine, changes nothing. */
  | { kind: 'read' }
  | { kind: 'create' }
  /** On one container, which must be of ours. */
  | { kind: 'container'; id: string; stream: boolean }
  | { kind: 'exec-create'; id: string }
  | { kind: 'exec'; id: string; stream: boolean }

type Found = Call | ((query: URLSearchParams) => Call | null)

/** Of the API, that of Docker 20.10. Our client names none; old ones take more from a call than is judged here. */
const OLDEST_MINOR = 41
const ID = '([a-zA-Z0-9][a-zA-Z0-9_.-]{0,127})'

const ROUTES: [method: string, path: RegExp, found: (id: string) => Found][] = [
  ['GET', /^\/_ping$/, () => ({ kind: 'read' })],
  ['HEAD', /^\/_ping$/, () => ({ kind: 'read' })],
  ['GET', /^\/version$/, () => ({ kind: 'read' })],
  ['GET', /^\/info$/, () => ({ kind: 'read' })],
  ['GET', /^\/images\/[\w./:@-]{1,255}\/json$/, () => ({ kind: 'read' })],
  ['GET', /^\/containers\/json$/, () => ownOnly],
  ['POST', /^\/containers\/create$/, () => ({ kind: 'create' })],
  ['GET', route('json'), (id) => ({ kind: 'container', id, stream: false })],
  // Without a query: it could name a checkpoint anywhere on the host to start from.
  ['POST', route('start'), (id) => (query) => (query.size === 0 ? { kind: 'container', id, stream: false } : null)],
  ['POST', route('(?:stop|kill|pause|unpause|wait)'), (id) => ({ kind: 'container', id, stream: false })],
  ['POST', route('attach'), (id) => ({ kind: 'container', id, stream: true })],
  ['DELETE', new RegExp(`^/containers/${ID}$`), (id) => ({ kind: 'container', id, stream: false })],
  ['POST', route('exec'), (id) => ({ kind: 'exec-create', id })],
  ['POST', new RegExp(`^/exec/${ID}/start$`), (id) => ({ kind: 'exec', id, stream: true })],
  ['GET', new RegExp(`^/exec/${ID}/json$`), (id) => ({ kind: 'exec', id, stream: false })]
]

/** null: not one of those. Matched as it came, without decoding: an escaped path is no path of ours. */
export function readCall(method: string, url: string): Call | null {
  // At the first mark, as the engine does it: what stands behind a second one is still part of the query.
  const [, path = '', query = ''] = /^([^?]*)\??(.*)$/s.exec(url) ?? []
  const [version = '', minor = OLDEST_MINOR] = /^\/v1\.([1-9]\d{1,2})(?=\/)/.exec(path) ?? []
  if (Number(minor) < OLDEST_MINOR) return null
  const plain = path.slice(version.length)
  if (plain.split('/').includes('..')) return null
  for (const [verb, pattern, found] of ROUTES) {
    const match = verb === method ? pattern.exec(plain) : null
    if (!match) continue
    const call = found(match[1] ?? '')
    return typeof call === 'function' ? call(new URLSearchParams(query)) : call
  }
  return null
}

/** A list that asks for our label; what else runs on this engine is nobody's business. */
function ownOnly(query: URLSearchParams): Call | null {
  try {
    const filters: unknown = JSON.parse(query.get('filters') ?? '{}')
    const labels = typeof filters === 'object' && filters !== null && 'label' in filters ? filters.label : []
    const wanted = Array.isArray(labels) ? labels : Object.keys(Object(labels))
    return wanted.some((label) => String(label).startsWith(`${LABEL.app}=`)) ? { kind: 'read' } : null
  } catch {
    return null
  }
}

function route(end: string): RegExp {
  return new RegExp(`^/containers/${ID}/${end}$`)
}
