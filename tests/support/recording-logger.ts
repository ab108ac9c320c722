import { Writable } from 'node:stream'
import { createLogger, type Logger } from '../../server/lib/logger.ts'

/** Logs every line to the list, at the most talkative level. */
export function recordingLogger(log: string[]): Logger {
  const sink = new Writable({
    write(chunk, _encoding, done) {
      log.push(String(chunk))
      done()
    }
  })
  return createLogger('trace', sink)
}
