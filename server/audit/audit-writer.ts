/**
 * Appends hashed rows to this process's chain. Owns the files, their rotation and their removal, not what the rows say.
 * Invariant: a row is written once and in order, or the caller gets an error; a file never ends in half of one of our rows.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, fstatSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { AppError, errorCode, messageOf } from '../lib/errors.ts'
import { makeFolder } from '../lib/files/make-folder.ts'
import { type AuditFamily, auditFileName, byChain, headOf, listAuditFiles } from './audit-files.ts'
import { FIRST_PREV, type RowBody, sealRow } from './audit-row.ts'
import { processBirth } from './process-birth.ts'
import { pruneList, removalRecords } from './prune-list.ts'

export interface AuditWriterOptions {
  dir: string
  version: string
  family: AuditFamily
  /** Limit for all files of this family together. */
  maxBytes: number
  maxAgeMs: number
  /** Other folders with chains that a new chain notes as seen. */
  others?: readonly string[] | undefined
  /** Why no call may be made now, if the copy of the log is too far behind. */
  refusal?: (() => string | undefined) | undefined
  /** Whether a file may be removed, because it has a copy. */
  isCopied?: ((path: string, bytes: number) => boolean) | undefined
  /** Limit per file; for tests. */
  maxFileBytes?: number
}

const MAX_FILE_BYTES = 16 * 1024 * 1024
/** How long the end of a call may wait, so that several are written together. */
const FLUSH_MS = 5
const LOOK_MS = 1000
const MAX_FOLLOWED = 64

export class AuditWriter {
  readonly chain: string
  readonly #options: AuditWriterOptions
  readonly #maxFileBytes: number
  #file: { handle: number; path: string; bytes: number } | undefined
  #isNew = false
  #number = 0
  #seq = 0
  #prev = FIRST_PREV
  #unwritten = ''
  /** Rows without a hash so far. */
  #waiting: { at: string; body: RowBody }[] = []
  /** Rows whose writers wait until they are on disk. */
  readonly #together: { body: RowBody; resolve(seq: number): void; reject(error: unknown): void }[] = []
  #sealing: NodeJS.Immediate | undefined
  #timer: NodeJS.Timeout | undefined
  #lookedAt = 0
  /** `isElsewhere`: the rows can be written, but not be copied. */
  #trouble: { since: string; refused: number; reason: string; isElsewhere: boolean } | undefined
  #closed = false

  constructor(options: AuditWriterOptions) {
    this.#options = options
    this.chain = newChain(options.family)
    this.#maxFileBytes = options.maxFileBytes ?? Math.min(MAX_FILE_BYTES, Math.ceil(options.maxBytes / 4))
  }

  /** Why nothing can be written at the moment. */
  get problem(): string | undefined {
    return this.#options.refusal?.() ?? (this.#trouble?.isElsewhere ? undefined : this.#trouble?.reason)
  }

  /** Writes the row before it returns, or throws `audit_unavailable` and leaves nothing behind. Returns the row's `seq`. */
  write(body: RowBody): number {
    return this.#writeAll([body])
  }

  /** Like `write`, but all rows of one event loop round are written together: either all of them or none. */
  writeTogether(body: RowBody): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    if (this.#together.push({ body, resolve, reject }) === 1) setImmediate(() => this.#writeGroup())
    return promise
  }

  #writeGroup(): void {
    const group = this.#together.splice(0)
    try {
      const first = this.#writeAll(group.map(({ body }) => body))
      for (const [at, { resolve }] of group.entries()) resolve(first + at)
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  /** Returns the `seq` of the first row; the others follow it. */
  #writeAll(bodies: RowBody[]): number {
    if (this.#closed) throw new AppError('unavailable', 'shutting_down', 'The gateway is stopping.')
    if (this.#seq === 0) this.#begin()
    try {
      this.#checkCopy()
      return this.#writeNow(bodies)
    } catch (error) {
      if (this.#trouble) this.#trouble.refused += bodies.length
      throw error
    }
  }

  #checkCopy(): void {
    const reason = this.#options.refusal?.()
    if (reason !== undefined) throw this.#refused(reason, true)
  }

  /** Writes the row within milliseconds, after the answer has gone out. Until that succeeds, `write` refuses. */
  writeSoon(body: RowBody): void {
    if (this.#closed) return
    this.#waiting.push({ at: new Date().toISOString(), body })
    this.#sealing ??= setImmediate(() => this.#sealWaiting())
    // Don't restart the timer for each row: when it fires, it writes everything that has come meanwhile.
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#tryFlush()
    }, FLUSH_MS).unref()
  }

  close(unfinished: number): void {
    if (this.#closed) return
    this.#sealWaiting()
    if (this.#seq > 0) this.#append({ kind: 'stop', unfinished })
    this.#tryFlush()
    this.#closed = true
    clearTimeout(this.#timer)
    if (this.#file) closeSync(this.#file.handle)
    this.#file = undefined
  }

  #begin(): void {
    const { dir, version, others = [] } = this.#options
    const heads = [...byChain(listAuditFiles([dir, ...others])).values()]
      .sort((a, b) => (b.at(-1)?.modifiedAt ?? 0) - (a.at(-1)?.modifiedAt ?? 0))
      .slice(0, MAX_FOLLOWED)
    const follows = heads.flatMap((files) => headOf(files.at(-1)?.path ?? '') ?? [])
    const { pid } = process
    this.#append({ kind: 'start', pid, born: processBirth(pid), host: hostname(), version, follows })
  }

  #sealWaiting(): void {
    this.#sealing = undefined
    for (const { at, body } of this.#waiting.splice(0)) this.#append(body, at)
  }

  #append(body: RowBody, at = new Date().toISOString()): void {
    const seq = this.#seq++
    const { line, hash } = sealRow({ chain: this.chain, seq, at, prev: this.#prev }, body)
    this.#prev = hash
    this.#unwritten += `${line}\n`
  }

  /** Rolls back if and only if it throws: the next row must continue from what is on disk. */
  #writeNow(bodies: RowBody[]): number {
    this.#sealWaiting()
    const before = { seq: this.#seq, prev: this.#prev, unwritten: this.#unwritten }
    for (const body of bodies) this.#append(body)
    try {
      this.#flush()
    } catch (error) {
      this.#seq = before.seq
      this.#prev = before.prev
      this.#unwritten = before.unwritten
      throw error
    }
    return before.seq
  }

  #tryFlush(): void {
    try {
      this.#flush()
    } catch {
      // The row stays in memory, `problem` says why, and no call is made before it is written.
    }
  }

  /** Throws only if nothing was written to disk. */
  #flush(): void {
    this.#sealWaiting()
    if (this.#unwritten === '') return
    try {
      const file = this.#open()
      const bytes = Buffer.byteLength(this.#unwritten)
      if (writeSync(file.handle, this.#unwritten) < bytes) {
        ftruncateSync(file.handle, file.bytes)
        throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
      }
      file.bytes += bytes
      this.#unwritten = ''
    } catch (error) {
      throw this.#failed(error)
    }
    this.#recovered()
    try {
      if (this.#isNew) this.#prune()
      if ((this.#file?.bytes ?? 0) >= this.#maxFileBytes) this.#turnOver()
    } catch {
      // The rows are safe. Old or excess files are removed with the next file.
    }
  }

  #failed(error: unknown): AppError {
    const code = errorCode(error) ?? messageOf(error)
    const { dir } = this.#options
    const reason = `Can't write the audit log in ${dir} (${code}): free some space there or fix its permissions.`
    return this.#refused(reason, false)
  }

  #refused(reason: string, isElsewhere: boolean): AppError {
    this.#trouble = { since: new Date().toISOString(), refused: 0, ...this.#trouble, reason, isElsewhere }
    return new AppError('unavailable', 'audit_unavailable', `${reason} No tool runs without a record of it.`)
  }

  #recovered(): void {
    if (!this.#trouble || this.#options.refusal?.() !== undefined) return
    const { since, refused, reason } = this.#trouble
    this.#trouble = undefined
    this.writeSoon({ kind: 'gap', since, refused, reason })
  }

  /** Writes the row about a removal before it removes the file. */
  #prune(): void {
    this.#isNew = false
    const { dir, family, maxBytes, maxAgeMs, isCopied } = this.#options
    const current = this.#file?.path ?? ''
    const files = listAuditFiles([dir])
    const limits = { family, maxBytes: maxBytes - this.#maxFileBytes, maxAgeMs, now: Date.now(), current }
    const going = pruneList(files, limits).filter(({ path, bytes }) => isCopied?.(path, bytes) ?? true)
    if (going.length === 0) return
    const last = removalRecords(going, files)
    if (last.files.length === 0) return
    this.#writeNow([{ kind: 'pruned', heads: last.heads, removed: last.removed }])
    for (const { path } of last.files) rmSync(path, { force: true })
  }

  #open(): { handle: number; bytes: number } {
    const now = Date.now()
    if (this.#file && now - this.#lookedAt > LOOK_MS) {
      this.#lookedAt = now
      // Someone has removed the file: continue in a new one. `verify` reports what is missing.
      if (fstatSync(this.#file.handle).nlink === 0) this.#leave()
    }
    this.#file ??= this.#create(now)
    return this.#file
  }

  #create(now: number): { handle: number; path: string; bytes: number } {
    const { dir, family } = this.#options
    makeFolder(dir)
    chmodSync(dir, 0o700)
    const path = join(dir, auditFileName(this.chain, this.#number + 1, family))
    const handle = openSync(path, 'ax', 0o600)
    this.#number++
    this.#isNew = true
    this.#lookedAt = now
    return { handle, path, bytes: 0 }
  }

  #turnOver(): void {
    this.#leave()
    this.writeSoon({ kind: 'continue', file: this.#number + 1 })
  }

  #leave(): void {
    if (this.#file) closeSync(this.#file.handle)
    this.#file = undefined
  }
}

/** Makes chains sort so that, within one millisecond, a decision comes before the call that it led to. */
function newChain(family: AuditFamily): string {
  const random = randomBytes(8).toString('hex')
  return `${family === 'routes' ? '0' : '123456789abcdef'[Number.parseInt(random[0] ?? '0', 16) % 15]}${random.slice(1)}`
}
