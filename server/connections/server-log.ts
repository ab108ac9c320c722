import { hash } from 'node:crypto'
import { appendFile, readFile, rename, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolder } from '../lib/files/make-folder.ts'
import { KnownSecrets, MIN_SECRET } from '../lib/known-secrets.ts'
import { ByteTail } from '../lib/streams/byte-tail.ts'

const TAIL_BYTES = 16 * 1024
const MAX_FILE_BYTES = 512 * 1024
const FLUSH_MS = 500

/** With an owner: the log of processes with that owner's credentials. The owner's id is a secret, so the name has its hash. */
export function serverLogFile(dir: string, server: string, owner?: string): string {
  const whose = owner === undefined ? '' : `@${hash('sha256', `log:${owner}`, 'hex').slice(0, 16)}`
  return join(dir, `${encodeURIComponent(server)}${whose}.log`)
}

/** The last lines of the shared log, followed by this owner's own; undefined if there are none. */
export async function readServerLog(
  dir: string,
  server: string,
  lines: number,
  owner: string
): Promise<string[] | undefined> {
  const files = [serverLogFile(dir, server), serverLogFile(dir, server, owner)]
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8').catch(() => undefined)))
  const found = texts.filter((text) => text !== undefined)
  return found.length === 0 ? undefined : found.flatMap((text) => text.trimEnd().split('\n').slice(-lines))
}

/** A server's stderr and other output: its end in memory, and a limited file that outlives the process. Secrets are redacted. */
export class ServerLog {
  readonly #file: string | undefined
  readonly #tail = new ByteTail(TAIL_BYTES)
  #latest = new ByteTail(TAIL_BYTES)
  #unwritten = new ByteTail(TAIL_BYTES)
  #hasUnwritten = false
  #timer: NodeJS.Timeout | undefined
  #written: Promise<void> = Promise.resolve()
  readonly #secrets = new KnownSecrets()
  #noise = 0
  #bytes = 0

  constructor(file: string | undefined) {
    this.#file = file
  }

  hide(secrets: string[]): void {
    this.#secrets.add(secrets)
  }

  redact(text: string): string {
    return this.#secrets.redact(text)
  }

  /** Number of bytes so far. */
  get written(): number {
    return this.#bytes
  }

  push(chunk: Buffer): void {
    this.#bytes += chunk.length
    this.#tail.push(chunk)
    this.#latest.push(chunk)
    if (this.#file === undefined) return
    this.#unwritten.push(chunk)
    this.#hasUnwritten = true
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref()
  }

  /** Logs a line on stdout that is not a message: only the first few, which show what is wrong. The line may be cut off. */
  noise(line: string): void {
    if (this.#noise++ < 20) this.push(Buffer.from(`[stdout] ${this.#closed(this.redact(line))}\n`))
  }

  /** Another process is started: earlier output says nothing about it. */
  started(): void {
    this.#latest = new ByteTail(TAIL_BYTES)
  }

  sinceStart(): string {
    return this.#clean(this.#latest)
  }

  tail(): string {
    return this.#clean(this.#tail)
  }

  /**
   * Resolves when everything pushed so far is in the file. Text that may be the beginning of a secret is held back until the rest
   * comes, unless `final`.
   */
  async flush({ final = false } = {}): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const file = this.#file
    const text = this.#take(final)
    if (file !== undefined && text !== '') this.#written = this.#written.then(() => append(file, text))
    await this.#written
  }

  #take(final: boolean): string {
    if (!this.#hasUnwritten) return ''
    const raw = this.#unwritten.text()
    const waiting = final ? 0 : this.#secrets.beginningAtEnd(raw)
    const text = this.#clean(this.#unwritten, waiting)
    this.#unwritten = new ByteTail(TAIL_BYTES)
    this.#unwritten.push(Buffer.from(raw.slice(raw.length - waiting)))
    this.#hasUnwritten = waiting > 0
    return text
  }

  /** Redacts secrets, including one that is cut off at either end. */
  #clean(bytes: ByteTail, without = 0): string {
    const raw = bytes.text()
    const from = bytes.isCut ? this.#secrets.restAtStart(raw) : 0
    return this.#closed(this.redact(raw.slice(from, raw.length - without)))
  }

  /** Without the beginning of a secret at its end. */
  #closed(text: string): string {
    const open = this.#secrets.beginningAtEnd(text)
    return open < MIN_SECRET ? text : `${text.slice(0, -open)}[secret]`
  }
}

async function append(file: string, text: string): Promise<void> {
  try {
    makeFolder(dirname(file))
    const size = await stat(file).then(
      (stats) => stats.size,
      () => 0
    )
    if (size > MAX_FILE_BYTES) await rename(file, `${file}.1`)
    await appendFile(file, text, { mode: 0o600 })
  } catch {
    // A call must not fail because its log can't be written.
  }
}
