import { ApiException } from '@kubernetes/client-node'
import { AppError, type ErrorKind, isAppError } from '../../../lib/errors.ts'
import { isRecord } from '../../../lib/is-record.ts'

const MAX_TEXT_CHARS = 500
const MAX_RETRY_AFTER_MS = 10_000

/** An answer of the API server that refuses a request. */
export class ApiRefusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

interface Rule {
  when: RegExp
  kind?: ErrorKind
  code: string
  say: (context: ErrorContext) => string
  /** For operators only. */
  where?: (context: ErrorContext) => string
}

export interface ErrorContext {
  address: string
  namespace: string
  to: string
  text: string
}

/** For answers of the API server. The first match counts. The text begins with the status. */
const RULES: Rule[] = [
  {
    when: /exceeded quota|maximum memory usage|maximum cpu usage/i,
    code: 'cluster_full',
    say: ({ text }) =>
      `There is no room in the cluster: ${text}. Close some sessions, or raise the quota of the namespace.`
  },
  {
    when: /violates PodSecurity|RuntimeClass|no PriorityClass|is forbidden: .*(spec|securityContext)|^422/i,
    code: 'pod_refused',
    say: ({ text }) => `The cluster does not accept the pod of a sandbox: ${text}`
  },
  {
    when: /^401/,
    code: 'engine_forbidden',
    say: () =>
      'The Kubernetes API does not accept the credentials of this server: its operator must look at the kubeconfig or the service account.',
    where: ({ address }) => `at ${address}`
  },
  {
    when: /^403/,
    code: 'engine_forbidden',
    say: ({ to }) => `This server may not ${to} in its cluster: its operator must apply the Role in deploy/kubernetes.`,
    where: ({ namespace, text }) => `namespace ${namespace}: ${text}`
  },
  {
    when: /^404.*namespaces? "/,
    code: 'engine_error',
    say: () => 'The cluster has no such namespace for sandboxes: create it, or set KUBERNETES_NAMESPACE.',
    where: ({ namespace }) => namespace
  },
  {
    when: /^404/,
    kind: 'not-found',
    code: 'container_gone',
    say: () => 'The pod of this sandbox no longer exists.'
  }
]

const NO_ANSWER =
  /\b(ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|ECONNRESET|EPIPE|ETIMEDOUT|EAI_AGAIN)\b|socket hang up|other side closed|fetch failed|terminated/

/**
 * Translates an error of the Kubernetes client to an AppError. Nothing of the error but its text is kept: the errors of a failed
 * connection contain the client's private key.
 */
export function translateApiError(error: unknown, context: Omit<ErrorContext, 'text'>): AppError {
  if (isAppError(error)) return error
  const text = describe(error)
  const status = statusOf(error)
  if (status === undefined) return notAnswered(text, context)
  const rule = RULES.find(({ when }) => when.test(text))
  const details = { status, reason: reasonOf(error) }
  const said = { ...context, text: text.replace(/^\d{3} /, '') }
  if (rule) {
    const where = rule.where && { where: rule.where(said) }
    return new AppError(rule.kind ?? 'unavailable', rule.code, rule.say(said), { details, ...where })
  }
  // A server that fails says which of its parts it could not reach, with their addresses.
  if (status >= 500) {
    const message = `The Kubernetes API failed to ${context.to}: try again, or ask the operator of this server.`
    return new AppError('unavailable', 'engine_error', message, { details, where: said.text })
  }
  const message = `The Kubernetes API failed to ${context.to}: ${said.text}`
  return new AppError('unavailable', 'engine_error', message, { details })
}

const NODE_SILENT =
  /pod does not exist|container not found|error dialing backend|connection refused|connection reset|no route to host|i\/o timeout|broken pipe|code = Unavailable/

/** Whether a failed exec says nothing about the pod: its kubelet is down, or has just started and knows no pods yet. */
export function isNodeSilent(failure: unknown): boolean {
  if (typeof failure === 'string') return NODE_SILENT.test(failure)
  return statusOf(failure) !== undefined && NODE_SILENT.test(describe(failure))
}

export function podUnreachable(where: unknown): AppError {
  const message = 'The node of this sandbox does not answer: try again in a minute.'
  const text = typeof where === 'string' ? where.slice(0, MAX_TEXT_CHARS) : describe(where)
  return new AppError('unavailable', 'pod_unreachable', message, { where: text })
}

/** The text may be what a credential plugin has printed. */
function notAnswered(text: string, { address, to }: Omit<ErrorContext, 'text'>): AppError {
  if (NO_ANSWER.test(text)) {
    const message = 'The Kubernetes API does not answer: try again, or ask the operator of this server.'
    return new AppError('unavailable', 'engine_unavailable', message, { where: `at ${address}` })
  }
  const message = `This server could not ask the Kubernetes API to ${to}: its operator must look at the log, and at the credentials of its kubeconfig.`
  return new AppError('unavailable', 'engine_error', message, { where: text })
}

/** The HTTP status of the answer; undefined if there was none, so that the request may have been carried out. */
export function statusOf(error: unknown): number | undefined {
  if (error instanceof ApiException) return error.code
  if (error instanceof ApiRefusal) return error.status
  if (isAppError(error) && typeof error.details.status === 'number') return error.details.status
  return undefined
}

/** How long a busy API server wants us to wait; undefined if it does not say. */
export function retryAfterMs(error: unknown): number | undefined {
  const header = error instanceof ApiException ? Number(error.headers['retry-after']) : Number.NaN
  return header >= 0 ? Math.min(header * 1000, MAX_RETRY_AFTER_MS) : undefined
}

/** Whether the request was certainly not carried out. An answer of 500 or more may come from a timeout half-way. */
export function wasRefused(error: unknown): boolean {
  const status = statusOf(error)
  return status !== undefined && status < 500
}

/** Why, in one word, as the API server names it. */
function reasonOf(error: unknown): string | undefined {
  const value = error instanceof ApiException ? parsed(error.body) : undefined
  return isRecord(value) && typeof value.reason === 'string' ? value.reason : undefined
}

function describe(error: unknown): string {
  const status = statusOf(error)
  if (error instanceof ApiException) return `${status} ${statusMessage(error.body)}`.slice(0, MAX_TEXT_CHARS)
  if (error instanceof ApiRefusal) return `${status} ${error.message}`.slice(0, MAX_TEXT_CHARS)
  return causes(error).join(': ').slice(0, MAX_TEXT_CHARS)
}

/** The messages and codes of an error and its causes. */
function causes(error: unknown, depth = 0): string[] {
  if (!isRecord(error) && !(error instanceof Error)) return [typeof error === 'string' ? error : 'unknown error']
  const { message, code, cause } = error as { message?: unknown; code?: unknown; cause?: unknown }
  const own = [message, code].filter((part) => typeof part === 'string' && part !== '') as string[]
  return cause === undefined || depth > 3 ? own : [...own, ...causes(cause, depth + 1)]
}

/** The message of the `Status` object in an answer. */
export function statusMessage(body: unknown): string {
  const value = parsed(body)
  if (typeof value === 'string') return value.slice(0, MAX_TEXT_CHARS)
  return isRecord(value) && typeof value.message === 'string' ? value.message : 'no reason given'
}

function parsed(body: unknown): unknown {
  if (typeof body !== 'string') return body
  try {
    return JSON.parse(body)
  } catch {
    return body
  }
}
