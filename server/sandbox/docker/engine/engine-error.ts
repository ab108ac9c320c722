import type Dockerode from 'dockerode'
import { AppError, type ErrorKind, errorCode, isAppError, messageOf } from '../../../lib/errors.ts'

interface Rule {
  when: RegExp
  /** Defaults to `unavailable`. */
  kind?: ErrorKind
  code: string
  say: (context: ErrorContext) => string
  /** For operators only. */
  where?: (context: ErrorContext) => string
}

export interface ErrorContext {
  address: string
  image?: string | undefined
  runtime?: string | undefined
  network?: string | undefined
}

/** Error texts of the engine, in its various versions, and of the system calls that reach it. The first match counts. */
const RULES: Rule[] = [
  {
    when: /\bEACCES\b|permission denied while trying to connect/,
    code: 'engine_forbidden',
    say: () =>
      'The server may not talk to the container engine: its operator must add its user to the docker group and start it in a new login.',
    where: ({ address }) => `at ${address}`
  },
  {
    when: /\b(ECONNREFUSED|ENOENT|ENOTFOUND|EHOSTUNREACH|ECONNRESET|EPIPE|ETIMEDOUT|ENOTSOCK)\b|socket hang up/,
    code: 'engine_unavailable',
    say: () => 'The container engine does not answer: start Docker, or ask the operator of this server.',
    where: ({ address }) => `at ${address}; in a checkout, \`npm run setup\` installs and starts it`
  },
  {
    when: /unknown (or invalid )?runtime|runtime "?[\w.-]+"? (is )?not (found|installed)/i,
    code: 'runtime_missing',
    say: ({ runtime }) => `The container engine has no runtime ${runtime}: install it, or unset SANDBOX_RUNTIME.`
  },
  {
    when: /no such image|unable to find image/i,
    code: 'image_missing',
    say: ({ image }) =>
      `The sandbox image ${image} is missing: run \`npm run setup\` on the engine's machine to build it.`
  },
  {
    when: /network [\w.-]+ not found|could not find a network/i,
    code: 'network_missing',
    say: ({ network }) => `The container engine has no network ${network}: create it, or unset SANDBOX_NETWORK.`
  },
  {
    when: /seccomp is not enabled|seccomp.*not supported|(loading|decoding) seccomp|seccomp profile/i,
    code: 'seccomp_unavailable',
    say: () =>
      "The container engine can't limit the system calls of a sandbox (seccomp): use an engine and a kernel that have it, or gVisor (SANDBOX_RUNTIME=runsc)."
  },
  {
    when: /unmapped (user|group)|set[ug]id: invalid argument|"tmpfs"[^\n]*invalid argument/i,
    code: 'uid_unmapped',
    say: () =>
      'The container engine does not have this user id: an engine without root, or with remapped users, has only its subordinate ids, often 65,536. Set SANDBOX_UIDS to ids that it has.'
  },
  {
    when: /no space left|cannot allocate memory|resource temporarily unavailable|too many open files|disk quota/i,
    code: 'engine_full',
    say: () => 'The container engine has no space left: free disk space or memory, or close some sessions.'
  },
  {
    when: /no such container/i,
    kind: 'not-found',
    code: 'container_gone',
    say: () => 'The container of this sandbox no longer exists.'
  },
  {
    when: /is (already )?paused/i,
    kind: 'conflict',
    code: 'container_paused',
    say: () => 'The container of this sandbox is paused.'
  },
  {
    when: /is not running|container stopped|cannot exec in a stopped|is restarting|is marked for removal/i,
    code: 'container_not_running',
    say: () => 'The container of this sandbox has ended.'
  }
]

/** Translates an error of the engine, or of the connection to it, to an AppError. */
export function translateEngineError(error: unknown, what: string, context: ErrorContext): AppError {
  if (isAppError(error)) return error
  const text = describe(error)
  const rule = RULES.find(({ when }) => when.test(text))
  if (rule) {
    const where = rule.where?.(context)
    const options = { cause: error, ...(where !== undefined && { where }) }
    return new AppError(rule.kind ?? 'unavailable', rule.code, rule.say(context), options)
  }
  // Strip the status that the client library puts before the engine's message.
  const reason = text.replace(/^\(HTTP code \d+\) [^-]* - /, '').slice(0, 500)
  const message = `The container engine failed to ${what}: ${reason}`
  return new AppError('unavailable', 'engine_error', message, { cause: error })
}

/** The HTTP status of the engine's response; undefined if the error does not come from the engine. */
export function engineStatus(error: unknown): number | undefined {
  const status = error instanceof Error && 'statusCode' in error ? error.statusCode : undefined
  return typeof status === 'number' ? status : undefined
}

/** For a promise's `catch`: null if the engine does not have what was asked for. */
export function nullIfMissing(error: unknown): null {
  if (engineStatus(error) === 404) return null
  throw error
}

/** Whether no connection to the engine was made, so that nothing can have happened there. */
export function neverReached(error: unknown): boolean {
  const cause = isAppError(error) ? error.cause : error
  return cause instanceof Error && 'syscall' in cause && cause.syscall === 'connect'
}

/** Whether our own engine proxy (server/sandbox/engine-proxy) refused the call: it does not allow pulls, builds or imports. */
export function isProxyRefusal(error: unknown): boolean {
  return engineStatus(error) === 403 && /engine proxy/.test(messageOf(error))
}

export async function engineAddress(docker: Dockerode): Promise<string> {
  const modem: { host?: unknown; port?: unknown; socketPath?: unknown; getSocketPath?: () => Promise<unknown> } =
    docker.modem as object
  if (typeof modem.host === 'string') return `${modem.host}:${modem.port ?? ''}`
  return String((await modem.getSocketPath?.()) ?? 'its default address')
}

/** For a failed connection, Node puts the reason in `code` and wraps several attempts in one error without a message. */
function describe(error: unknown): string {
  return `${errorCode(error) ?? ''} ${messageOf(error)}`.trim()
}
