/**
 * A process in a pod as a stream, over the WebSocket protocol v5.channel.k8s.io: the first byte of a message is its channel. Reading
 * gives the output, writing is the input. Invariant: memory use stays flat, whichever side is slow.
 */
import { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { isRecord } from '../../../lib/is-record.ts'
import type { DemuxSink } from '../../workspace/stream-transport.ts'

const STDIN = 0
const STDOUT = 1
const STDERR = 2
const STATUS = 3
const CLOSE = 255
/** Load balancers close connections that are idle for a minute. */
const PING_MS = 20_000
const MAX_MESSAGE_BYTES = 64 * 1024
const MAX_STATUS_BYTES = 64 * 1024
const CLOSE_MS = 2000

export class ExecStream extends Duplex {
  /** The exit code; null if the stream ended without one. A code of 0 proves nothing: the process may live on. */
  readonly exitCode: Promise<number | null>
  /** Why the node could not run the process, if it said so. */
  failure: string | undefined
  readonly #ended: (code: number | null) => void
  readonly #socket: WebSocket
  #onStderr: DemuxSink['stderr'] = () => {}
  #held = 0
  #pinging: NodeJS.Timeout | undefined
  #isAnswered = true
  #hasAnswered = false

  /** The socket must be new: what arrives before it is opened is read here. */
  constructor(socket: WebSocket, pingMs = PING_MS) {
    super({ autoDestroy: true, allowHalfOpen: true })
    const { promise, resolve } = Promise.withResolvers<number | null>()
    this.exitCode = promise
    this.#ended = resolve
    this.#socket = socket
    socket.on('message', (data: Buffer) => this.#receive(data))
    socket.on('pong', () => {
      this.#isAnswered = true
      this.#hasAnswered = true
    })
    socket.once('open', () => {
      this.#pinging = setInterval(() => this.#ping(), pingMs).unref()
    })
    // The message of the error is enough; the error event contains the client's key.
    socket.on('error', () => {})
    socket.once('close', () => {
      this.#ended(null)
      // A slow reader gets the rest first.
      this.#whenRead(() => this.destroy())
      this.push(null)
    })
  }

  get isPodGone(): boolean {
    return this.#socket.readyState !== this.#socket.OPEN
  }

  readonly demux = (sink: DemuxSink) => {
    this.#onStderr = sink.stderr
    return { push: (chunk: Buffer) => sink.stdout(chunk) }
  }

  /** Reads nothing more until this has resolved, because somebody can't take the error output fast enough. */
  holdUntil(ready: Promise<unknown>): void {
    this.#held += 1
    this.#socket.pause()
    const release = () => {
      this.#held -= 1
      if (this.#held === 0) this.#socket.resume()
    }
    ready.then(release, release)
  }

  #receive(data: Buffer): void {
    const payload = data.subarray(1)
    if (data[0] === STDOUT && payload.length > 0 && !this.push(payload)) this.#socket.pause()
    else if (data[0] === STDERR) this.#onStderr(payload)
    else if (data[0] === STATUS) {
      const { exitCode, failure } = readStatus(payload)
      this.failure = failure
      this.#ended(exitCode)
    }
  }

  /** An error of the writer would take the rest from the reader. */
  #whenRead(then: () => void): void {
    if (this.readableEnded || this.destroyed) then()
    else this.once('end', then)
  }

  override _read(): void {
    if (this.#held === 0) this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const fail = (message: string) => this.#whenRead(() => done(new Error(message)))
    const send = (from: number) => {
      if (this.isPodGone) return fail('The stream into the pod is closed.')
      const part = chunk.subarray(from, from + MAX_MESSAGE_BYTES)
      const next = from + part.length
      // The callback comes when the bytes have left this process, so a slow pod slows the writer down.
      this.#socket.send(Buffer.concat([Buffer.of(STDIN), part]), (error) => {
        if (error) fail(error.message)
        else if (next < chunk.length) send(next)
        else done()
      })
    }
    send(0)
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(Buffer.of(CLOSE, STDIN), () => done())
    else done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearInterval(this.#pinging)
    this.#ended(null)
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#socket.resume()
      this.#socket.close()
      const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS).unref()
      this.#socket.once('close', () => clearTimeout(timer))
    } else if (this.#socket.readyState === this.#socket.CONNECTING) this.#socket.terminate()
    done(error)
  }

  /** A server that has answered pings before and no longer does is gone. */
  #ping(): void {
    if (!this.#isAnswered && this.#hasAnswered) return void this.#socket.terminate()
    this.#isAnswered = false
    // A paused socket can't see the answer.
    if (this.isPaused() || this.#socket.isPaused) this.#isAnswered = true
    this.#socket.ping(() => {})
  }
}

function readStatus(payload: Buffer): { exitCode: number | null; failure?: string } {
  if (payload.length > MAX_STATUS_BYTES) return { exitCode: null }
  try {
    const value: unknown = JSON.parse(payload.toString('utf8'))
    if (!isRecord(value)) return { exitCode: null }
    if (value.status === 'Success') return { exitCode: 0 }
    const causes = isRecord(value.details) && Array.isArray(value.details.causes) ? value.details.causes : []
    const found = causes.find((cause) => isRecord(cause) && cause.reason === 'ExitCode')
    const code = Number(isRecord(found) ? found.message : Number.NaN)
    if (Number.isSafeInteger(code)) return { exitCode: code }
    return { exitCode: null, ...(typeof value.message === 'string' ? { failure: value.message } : {}) }
  } catch {
    return { exitCode: null }
  }
}
