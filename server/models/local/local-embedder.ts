/**
 * Turns texts into vectors on this machine, in one thread that starts with the first text and ends when it has been idle. Owns that
 * thread. Invariant: whatever the thread does, every text is answered or fails within a time limit.
 */
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { AppError } from '../../lib/errors.ts'
import type { Embedder } from '../embedder.ts'
import { LOCAL_MODEL, MINILM_FILES } from './minilm-files.ts'
import { MINILM_THREAD } from './minilm-thread.ts'

export interface LocalEmbedderOptions {
  folder: string
  /** When the thread ends after the last text; it holds about 240 MB. */
  idleMs?: number
  /** After this time without an answer, the thread is ended. */
  stuckMs?: number
  /** The source of the thread and its data, for tests. */
  thread?: { source: string; data?: unknown }
}

interface Job {
  texts: readonly string[]
  done: PromiseWithResolvers<Float32Array[]>
}

interface Answer {
  id: number
  vectors?: Float32Array[]
  error?: string
}

const IDLE_MS = 120_000
const STUCK_MS = 20_000
const MAX_WAITING = 100
const MAX_TOKENS = 256

export class LocalEmbedder implements Embedder {
  readonly model = LOCAL_MODEL
  /** A request then waits for one tool at most. */
  readonly batch = 1
  readonly isLocal = true
  readonly #options: LocalEmbedderOptions
  readonly #jobs = new Map<number, Job>()
  #worker: Worker | undefined
  #timer: NodeJS.Timeout | undefined
  #next = 0
  #closed = false

  constructor(options: LocalEmbedderOptions) {
    this.#options = options
  }

  get isLoaded(): boolean {
    return this.#worker !== undefined
  }

  async embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
    signal.throwIfAborted()
    if (this.#closed) throw failure('it is closed')
    if (this.#jobs.size >= MAX_WAITING) throw failure('too many texts wait')
    const id = this.#next
    this.#next += 1
    const done = Promise.withResolvers<Float32Array[]>()
    // The answer may come after its reader has left.
    done.promise.catch(() => {})
    this.#jobs.set(id, { texts, done })
    this.#worker ??= this.#start()
    this.#worker.postMessage({ id, texts })
    if (this.#jobs.size === 1) this.#watch()
    return done.promise
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#end(failure('it is closed'))
  }

  #start(): Worker {
    const { folder, thread } = this.#options
    const files = Object.entries(MINILM_FILES).map(([name, { path, sha256 }]) => {
      return [name, { path: join(folder, path), sha256 }] as const
    })
    const worker = new Worker(thread?.source ?? MINILM_THREAD, {
      eval: true,
      // It needs none of our variables, some of which are secret.
      env: {},
      execArgv: [],
      workerData: thread?.data ?? { ...Object.fromEntries(files), maxTokens: MAX_TOKENS }
    })
    worker.unref()
    worker.on('message', (answer: Answer) => this.#answered(worker, answer))
    worker.on('error', (error) => this.#lost(worker, failure(error.message)))
    worker.on('exit', (code) => this.#lost(worker, failure(`its thread ended with code ${code}`)))
    return worker
  }

  #answered(worker: Worker, { id, vectors, error }: Answer): void {
    if (worker !== this.#worker) return
    const job = this.#jobs.get(id)
    this.#jobs.delete(id)
    if (vectors && vectors.length === job?.texts.length) job.done.resolve(vectors)
    else job?.done.reject(failure(error ?? 'it sent an invalid answer'))
    // A failure may have left the engine in a bad state.
    if (error !== undefined) void this.#end(failure(error))
    else this.#watch()
  }

  /** Waits for the next answer, or until it has been idle for long enough. */
  #watch(): void {
    clearTimeout(this.#timer)
    const { idleMs = IDLE_MS, stuckMs = STUCK_MS } = this.#options
    const isIdle = this.#jobs.size === 0
    const stop = () => void this.#end(failure(`it did not answer for ${stuckMs} ms`))
    this.#timer = setTimeout(stop, isIdle ? idleMs : stuckMs).unref()
  }

  #lost(worker: Worker, reason: AppError): void {
    if (worker === this.#worker) void this.#end(reason)
  }

  /** The next text starts another thread. */
  async #end(reason: AppError): Promise<void> {
    clearTimeout(this.#timer)
    const worker = this.#worker
    this.#worker = undefined
    for (const { done } of this.#jobs.values()) done.reject(reason)
    this.#jobs.clear()
    await worker?.terminate()
  }
}

function failure(reason: string): AppError {
  return new AppError('unavailable', 'embeddings_failed', `The embedding model on this machine failed: ${reason}.`)
}
