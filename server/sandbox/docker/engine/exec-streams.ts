import { once } from 'node:events'
import { type Duplex, PassThrough, type Readable, type Writable } from 'node:stream'
import type Dockerode from 'dockerode'
import type { EngineCall } from './engine-call.ts'
import { execExitCode, prepareExec, startExec } from './exec.ts'
import { StreamDemuxer } from './stream-demuxer.ts'

const EXEC_MS = 15_000

export interface ExecOptions {
  docker: Dockerode
  call: EngineCall
  containerId: string
  cmd: string[]
  workingDir: string
}

/** A command in a running container, with separate output streams. */
export interface ExecStreams {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
  /** Resolves when the stream has ended; never rejects. */
  readonly ended: Promise<void>
  /** Resolves with null if the engine does not report a code. */
  exitCode(): Promise<number | null>
  destroy(): void
}

export async function execStreams({ docker, call, containerId, cmd, workingDir }: ExecOptions): Promise<ExecStreams> {
  const exec = await prepareExec({ docker, call, containerId, cmd, workingDir, what: 'a command', ms: EXEC_MS })
  const stream = await startExec(exec, call, 'a command', EXEC_MS)
  stream.on('error', () => {})
  const stdout = new PassThrough()
  const stderr = new PassThrough()
  return {
    stdin: stream,
    stdout,
    stderr,
    ended: demultiplex(stream, stdout, stderr),
    exitCode: () => execExitCode(exec, call).catch(() => null),
    destroy: () => void stream.destroy()
  }
}

/**
 * Reads the next chunk only when the last one has been consumed: a slow reader slows the writer down, and memory use stays flat.
 */
async function demultiplex(stream: Duplex, stdout: PassThrough, stderr: PassThrough): Promise<void> {
  const demuxer = new StreamDemuxer({
    stdout: (payload) => void stdout.write(Buffer.from(payload)),
    stderr: (payload) => void stderr.write(Buffer.from(payload))
  })
  const closed = once(stream, 'close').catch(() => {})
  try {
    for await (const chunk of stream) {
      demuxer.push(chunk)
      for (const output of [stdout, stderr]) {
        if (output.writableNeedDrain) await Promise.race([once(output, 'drain'), closed])
      }
    }
  } catch {
    // A broken or damaged stream counts as ended.
  }
  stream.destroy()
  stdout.end()
  stderr.end()
}
