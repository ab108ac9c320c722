import { type DestinationStream, type LogFn, type Logger, pino, stdSerializers } from 'pino'
import { AppError } from './errors.ts'
import { RepeatedLines } from './repeated-lines.ts'

export type { Logger }

const SECRET_PATHS = ['token', 'accessToken', 'apiKey', 'authorization', 'cookie', 'password', 'secret'].flatMap(
  (key) => [key, `*.${key}`]
)
const WARN = 40
const AS_IT_IS = { write: true, skipped: 0 }
/** Lines about different things are different lines, even if the sentence is the same. */
const SUBJECTS = ['id', 'sessionId', 'server', 'callId', 'containerId', 'code', 'address']

/** JSON lines on stderr: stdout belongs to stdio MCP. Repeated warnings and errors are collapsed. */
export function createLogger(level: string, destination: DestinationStream = process.stderr): Logger {
  const repeated = new RepeatedLines()
  const logMethod = function (this: Logger, args: Parameters<LogFn>, method: LogFn, lineLevel: number): void {
    const { write, skipped } = lineLevel < WARN ? AS_IT_IS : repeated.take(keyOf(args, lineLevel, this.bindings()))
    if (!write) return
    if (skipped === 0) {
      method.apply(this, args)
      return
    }
    const [first, ...rest] = args as unknown as [unknown, ...string[]]
    const [fields, ...words] = typeof first === 'string' ? [{}, first, ...rest] : [first, ...rest]
    Reflect.apply(method, this, [{ ...(fields as object), repeated: skipped }, ...words])
  }
  return pino(
    {
      level,
      base: null,
      redact: { paths: SECRET_PATHS, censor: '[secret]' },
      serializers: { err: (error: Error) => errorFields(error, isVerbose(level)) },
      hooks: { logMethod }
    },
    destination
  )
}

function keyOf(args: unknown[], level: number, bindings: Record<string, unknown>): string {
  const [first, second] = typeof args[0] === 'string' ? [{}, args[0]] : args
  const fields: Record<string, unknown> = { ...bindings, ...(first ?? {}) }
  const why = fields.err instanceof Error ? fields.err.message : ''
  return [level, second, why, ...SUBJECTS.map((name) => fields[name] ?? '')].join(' ')
}

const isVerbose = (level: string) => level === 'debug' || level === 'trace'

/**
 * Our own errors say what happened in one sentence. A stack helps only with errors that nobody expected. The words of a library
 * are about its own options: they are shown at the level debug, or where the error is a fault of ours.
 */
function errorFields(error: Error, verbose: boolean): object {
  if (!(error instanceof AppError)) return stdSerializers.err(error)
  const { code, kind, message, cause } = error
  const isShown = (verbose || kind === 'internal') && cause instanceof Error && !(cause instanceof AppError)
  return { code, kind, message, ...(isShown ? { detail: cause.message } : {}) }
}

export const silentLogger: Logger = pino({ level: 'silent' })
