import { appendFile, mkdir, readFile, rename, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ByteTail } from '../../lib/byte-tail.ts'
import { KnownSecrets } from '../../lib/known-secrets.ts'

const TAIL_BYTES = 16 * 1024
const MAX_FILE_BYTES = 512 * 1024
const FLUSH_MS = 500

export function serverLogFile(dir: string, server: string): string {
  return join(dir, `${encodeURIComponent(server)}.log`)
}

/** The last lines that any process of it has written; undefined when there are none. */
export async function readServerLog(dir: string, server: string, lines: number): Promise<string[] | undefined> {
  const text = await readFile(serverLogFile(dir, server), 'utf8').catch(() => undefined)
  return text?.trimEnd().split('\n').slice(-lines)
}

/** What a server writes beside the protocol: a tail in memory, and a bounded file that outlives the process. Secrets are blotted out. */
export class ServerLog {
  readonly #file: string | undefined
  readonly #tail = new ByteTail(TAIL_BYTES)
  #unwritten = new ByteTail(TAIL_BYTES)
  #hasUnwritten = false
  #timer: NodeJS.Timeout | undefined
  readonly #secrets = new KnownSecrets()
  #noise = 0

  constructor(file: string | undefined) {
    this.#file = file
  }

  hide(secrets: string[]): void {
    this.#secrets.add(secrets)
  }

  redact(text: string): string {
    return this.#secrets.redact(text)
  }

  push(chunk: Buffer): void {
    this.#tail.push(chunk)
    if (this.#file === undefined) return
    this.#unwritten.push(chunk)
    this.#hasUnwritten = true
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref()
  }

  /** A line on stdout that is no message: the first few show what is wrong, more would be a flood. */
  noise(line: string): void {
    if (this.#noise++ < 20) this.push(Buffer.from(`[stdout] ${line}\n`))
  }

  tail(): string {
    return this.redact(this.#tail.text())
  }

  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#file === undefined || !this.#hasUnwritten) return
    const text = this.redact(this.#unwritten.text())
    this.#unwritten = new ByteTail(TAIL_BYTES)
    this.#hasUnwritten = false
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
      const size = await stat(this.#file).then(
        (stats) => stats.size,
        () => 0
      )
      if (size > MAX_FILE_BYTES) await rename(this.#file, `${this.#file}.1`)
      await appendFile(this.#file, text, { mode: 0o600 })
    } catch {
      // A log that can't be written is no reason to fail a call.
    }
  }
}
