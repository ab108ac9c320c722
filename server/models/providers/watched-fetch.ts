import { AppError } from '../../lib/errors.ts'
import { cancelled } from '../../lib/waiting/cancelled.ts'

export interface WatchOptions {
  /** Completes "Waited 60 s for …". */
  label: string
  idleMs: number
  totalMs: number
  maxBytes: number
  signal: AbortSignal
}

/**
 * A fetch that we monitor: it ends if nothing arrives for too long, if too much arrives, or with the caller's signal. `failure`
 * says why we ended it, because the layers above wrap and rename errors. Time in which nobody reads does not count. Redirects are
 * not followed, because they would send the key to another host.
 */
export class WatchedFetch {
  failure: AppError | undefined
  answered = false
  #bytes = 0
  readonly #options: WatchOptions
  readonly #controller = new AbortController()
  readonly #total: NodeJS.Timeout
  readonly #onAbort = () => this.#fail(abandoned(this.#options))

  constructor(options: WatchOptions) {
    this.#options = options
    this.#total = setTimeout(() => this.#fail(tooSlow(options)), options.totalMs)
    if (options.signal.aborted) this.#onAbort()
    else options.signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await this.#whileListening(() =>
      globalThis.fetch(input, { ...init, signal: this.#controller.signal, redirect: 'manual' })
    )
    this.answered = true
    if (response.body === null) return response
    const { status, statusText, headers } = response
    return new Response(this.#watch(response.body), { status, statusText, headers })
  }

  /** Closes the connection, if it is still open. */
  close(): void {
    clearTimeout(this.#total)
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    this.#controller.abort(abandoned(this.#options))
  }

  #watch(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const { done, value } = await this.#whileListening(() => reader.read())
          if (done) return controller.close()
          this.#bytes += value.byteLength
          if (this.#bytes > this.#options.maxBytes) throw this.#fail(tooMuch(this.#options))
          controller.enqueue(value)
        },
        cancel: (reason) => reader.cancel(reason)
      },
      { highWaterMark: 0 }
    )
  }

  async #whileListening<T>(work: () => Promise<T>): Promise<T> {
    const idle = setTimeout(() => this.#fail(silent(this.#options)), this.#options.idleMs)
    try {
      return await work()
    } finally {
      clearTimeout(idle)
    }
  }

  #fail(error: AppError): AppError {
    this.failure ??= error
    this.#controller.abort(this.failure)
    return this.failure
  }
}

function abandoned({ signal, label }: WatchOptions): AppError {
  return cancelled(signal.reason, `Cancelled: the answer of ${label}.`)
}

function silent({ label, idleMs }: WatchOptions): AppError {
  const message = `${label} sent nothing for ${idleMs / 1000} s. Send the message again, or choose another model.`
  return new AppError('timeout', 'model_timeout', message)
}

function tooSlow({ label, totalMs }: WatchOptions): AppError {
  return new AppError('timeout', 'model_timeout', `${label} did not finish its answer within ${totalMs / 1000} s.`)
}

function tooMuch({ label, maxBytes }: WatchOptions): AppError {
  const message = `${label} sent more than ${Math.round(maxBytes / 1024 / 1024)} MB for one answer, so it was cut off.`
  return new AppError('unavailable', 'model_stream_cut', message)
}
