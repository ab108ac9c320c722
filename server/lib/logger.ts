import { type DestinationStream, type LogFn, type Logger, pino, stdSerializers } from 'pino'
import { AppError } from './errors.ts'
import { plural } from './plural.ts'
import { RepeatedLines, type WriteLine } from './repeated-lines.ts'

export type { Logger }

const SECRET_PATHS = ['token', 'accessToken', 'apiKey', 'authorization', 'cookie', 'password', 'secret'].flatMap(
  (key) => [key, `*.${key}`]
)
const WARN = 40
/** Lines about different things are different lines, even if the sentence is the same. */
const SUBJECTS = ['id', 'sessionId', 'server', 'callId', 'containerId', 'code', 'address', 'part', 'outage']

/** JSON lines on stderr: stdout belongs to stdio MCP. Repeated warnings and errors are collapsed. */
export function createLogger(level: string, destination: DestinationStream = process.stderr): Logger {
  const repeated = new RepeatedLines()
  const logMethod = function (this: Logger, args: Parameters<LogFn>, method: LogFn, lineLevel: number): void {
    const { fields, words } = partsOf(args)
    const { err } = fields
    // Many lines end with the error's own sentence: once is enough.
    const isSaid = err instanceof AppError && words[0]?.includes(err.message)
    const said = isSaid
      ? { err: new AppError(err.kind, err.code, '', { cause: err.cause, ...(err.where && { where: err.where }) }) }
      : {}
    const write: WriteLine = (skipped, lastAt) => {
      const counted = skipped > 0 ? { repeated: skipped, ...(lastAt && { lastAt }) } : {}
      const [sentence, ...rest] = words
      // The problem may be over by now, so the summary must not read like news.
      const summary =
        lastAt && `Summary: repeated ${plural(skipped, 'time')}, last at ${lastAt.toISOString()}: ${sentence}`
      Reflect.apply(method, this, [{ ...fields, ...said, ...counted }, summary ?? sentence, ...rest])
    }
    if (lineLevel < WARN) write(0)
    else repeated.take(keyOf({ ...this.bindings(), ...fields }, words, lineLevel), write)
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

function partsOf(args: unknown[]): { fields: Record<string, unknown>; words: string[] } {
  const [first, ...rest] = args
  if (typeof first === 'string') return { fields: {}, words: [first, ...(rest as string[])] }
  const fields = first instanceof Error ? { err: first } : { ...(first as object) }
  return { fields, words: rest as string[] }
}

/** Numbers in the sentence of an error, such as attempts and seconds, don't make it another one. */
function keyOf(fields: Record<string, unknown>, [sentence = '']: string[], level: number): string {
  const { err } = fields
  const subjects = SUBJECTS.map((name) => fields[name] ?? '')
  if (err instanceof AppError)
    return [level, sentence.replaceAll(/(?<= )\d+(?=[ .])/g, '#'), err.code, ...subjects].join(' ')
  return [level, sentence, err instanceof Error ? err.message : '', ...subjects].join(' ')
}

const isVerbose = (level: string) => level === 'debug' || level === 'trace'

/**
 * Our own errors say what happened in one sentence. A stack helps only with errors that nobody expected. The words of a library
 * are about its own options: they are shown at the level debug, or where the error is a fault of ours.
 */
function errorFields(error: Error, verbose: boolean): object {
  if (!(error instanceof AppError)) return stdSerializers.err(error)
  const { code, kind, message, cause, where } = error
  const isShown = (verbose || kind === 'internal') && cause instanceof Error && !(cause instanceof AppError)
  const place = where === undefined ? {} : { where }
  return { code, kind, ...(message === '' ? {} : { message }), ...place, ...(isShown ? { detail: cause.message } : {}) }
}

export const silentLogger: Logger = pino({ level: 'silent' })
