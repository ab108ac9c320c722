import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'

export type { Logger }

const SECRET_PATHS = ['token', 'accessToken', 'apiKey', 'authorization', 'cookie', 'password', 'secret'].flatMap(
  (key) => [key, `*.${key}`]
)

/** JSON lines on stderr: stdout belongs to stdio MCP. */
export function createLogger(level: string, destination: DestinationStream = process.stderr): Logger {
  return pino(
    {
      level,
      base: null,
      redact: { paths: SECRET_PATHS, censor: '[secret]' },
      serializers: { err: stdSerializers.err }
    },
    destination
  )
}

export const silentLogger: Logger = pino({ level: 'silent' })
