/** The one error type of the project. Faces translate it; everything else only throws or passes it on. */

export type ErrorKind =
  | 'invalid'
  | 'not-found'
  | 'conflict'
  | 'forbidden'
  | 'unavailable'
  | 'timeout'
  | 'cancelled'
  | 'internal'

export interface AppErrorOptions {
  details?: Record<string, unknown>
  cause?: unknown
  /** An address or a folder, for operators: it is in the log, in `/readyz` and in the output of commands, and no chat user sees it. */
  where?: string
}

export class AppError extends Error {
  readonly kind: ErrorKind
  /** Stable, snake_case; documented in docs/ERRORS.md. */
  readonly code: string
  readonly details: Record<string, unknown>
  readonly where: string | undefined

  constructor(kind: ErrorKind, code: string, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'AppError'
    this.kind = kind
    this.code = code
    this.details = options.details ?? {}
    this.where = options.where
  }
}

export function isAppError(error: unknown, code?: string): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code)
}

/** A readable sentence for any thrown value, for logs and causes. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The same for whoever runs the server, with the address or folder that it is about. */
export function operatorMessageOf(error: unknown): string {
  const where = isAppError(error) && error.where !== undefined ? ` (${error.where})` : ''
  return messageOf(error) + where
}

/** The code of a system error, such as ENOENT. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

export function hasCode(error: unknown, ...codes: string[]): boolean {
  return codes.includes(errorCode(error) ?? '')
}
