import { once } from 'node:events'
import { PassThrough, type Readable, type Writable } from 'node:stream'
import type { ExecStream } from './exec-stream.ts'

/** A command in a running pod, with separate output streams. */
export interface ExecCommand {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves when the stream has ended; never rejects. */
  readonly ended: Promise<void>
  /** Null if nobody knows. A code of 0 proves nothing; see `ExecStream`. */
  readonly exitCode: Promise<number | null>
  destroy(): void
}

/** A reader of either output that is slow slows the command down. */
export function commandOf(stream: ExecStream): ExecCommand {
  stream.on('error', () => {})
  const stderr = new PassThrough()
  const closed = once(stream, 'close').catch(() => {})
  stream.demux({
    stdout: () => {},
    stderr(payload) {
      if (!stderr.write(payload)) stream.holdUntil(Promise.race([once(stderr, 'drain'), closed]))
    }
  })
  const stdout = new PassThrough()
  const ended = copied(stream, stdout, closed).then(() => void stderr.end())
  return { stdin: stream, stdout, stderr, ended, exitCode: stream.exitCode, destroy: () => void stream.destroy() }
}

async function copied(stream: ExecStream, stdout: PassThrough, closed: Promise<unknown>): Promise<void> {
  try {
    for await (const chunk of stream)
      if (!stdout.write(chunk)) await Promise.race([once(stdout, 'drain').catch(() => {}), closed])
  } catch {
    // A broken stream counts as ended.
  }
  stream.destroy()
  stdout.end()
}
