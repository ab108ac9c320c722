import type { FileHandle } from 'node:fs/promises'
import { contentDamaged } from './checkpoint-errors.ts'
import type { Location } from './checkpoint-state.ts'
import { readFully, writeFully } from './file-io.ts'
import { checked, readContent, runsOf, type WantedContent } from './read-content.ts'
import type { SessionFolder } from './session-folder.ts'

interface Pack {
  handle: FileHandle
  /** Bytes in the file, both live and dead. */
  bytes: number
  readers: number
  dropped: boolean
}

/** The location of bytes in a pack. */
export interface PackRange {
  pack: string
  offset: number
  bytes: number
}

/** Where content is appended. It is not durable yet. */
export interface PackWriter {
  append(content: Uint8Array): Promise<PackRange>
  /** Drops everything from this position on. */
  rewind(from: Pick<PackRange, 'pack' | 'offset'>): Promise<void>
}

/** Packs whose content can be copied into a new one. */
export interface CopiedPacks extends PackWriter {
  /** The next append starts a new pack. */
  seal(): void
  range(range: PackRange): Promise<Buffer>
}

/** The open packs of one owner. It reads from all of them and appends to the newest one. */
export class PackSet implements CopiedPacks {
  readonly #folder: SessionFolder
  readonly #packs = new Map<string, Pack>()
  #current: string | undefined
  #unsynced = false
  /** How many bytes of the current pack a manifest names already. */
  #keptBytes = 0

  constructor(folder: SessionFolder) {
    this.#folder = folder
  }

  get bytes(): number {
    let sum = 0
    for (const pack of this.#packs.values()) sum += pack.bytes
    return sum
  }

  sizes(): [name: string, bytes: number][] {
    return [...this.#packs].map(([name, pack]) => [name, pack.bytes])
  }

  add(name: string, handle: FileHandle, bytes: number): void {
    this.#packs.set(name, { handle, bytes, readers: 0, dropped: false })
  }

  /** Appends without making the content durable. */
  async append(content: Uint8Array): Promise<PackRange> {
    const [name, pack] = await this.#writable()
    const offset = pack.bytes
    this.#unsynced = true
    await writeFully(pack.handle, content, offset)
    pack.bytes += content.length
    return { pack: name, offset, bytes: content.length }
  }

  async rewind({ pack, offset }: Pick<PackRange, 'pack' | 'offset'>): Promise<void> {
    const known = this.#packs.get(pack)
    if (!known || pack !== this.#current) return
    known.bytes = offset
    // If this fails, the next append overwrites the rest.
    await known.handle.truncate(offset).catch(() => {})
  }

  async sync(): Promise<void> {
    const pack = this.#current === undefined ? undefined : this.#packs.get(this.#current)
    if (!this.#unsynced || !pack) return
    await pack.handle.datasync()
    this.#unsynced = false
  }

  /** A manifest now names everything that was appended so far. */
  markKept(): void {
    const pack = this.#current === undefined ? undefined : this.#packs.get(this.#current)
    this.#keptBytes = pack?.bytes ?? 0
  }

  /** The next append starts a new file. */
  seal(): void {
    this.#current = undefined
    this.#unsynced = false
    this.#keptBytes = 0
  }

  /** Frees what no manifest names, and seals: after a failed write, nobody knows what the file contains. */
  async dropTail(): Promise<void> {
    if (this.#current !== undefined) await this.rewind({ pack: this.#current, offset: this.#keptBytes })
    this.seal()
  }

  drop(name: string): void {
    const pack = this.#packs.get(name)
    if (!pack) return
    this.#packs.delete(name)
    if (name === this.#current) this.seal()
    pack.dropped = true
    this.#closeUnused(pack)
  }

  close(): void {
    for (const name of [...this.#packs.keys()]) this.drop(name)
  }

  async range({ pack, offset, bytes: length }: PackRange): Promise<Buffer> {
    const known = this.#packs.get(pack)
    if (!known) throw contentDamaged()
    const bytes = await readFully(known.handle, offset, length)
    if (bytes.length !== length) throw contentDamaged()
    return bytes
  }

  async *read(hash: string, location: Location, chunkBytes: number): AsyncIterable<Uint8Array> {
    const known = this.#packs.get(location.pack)
    if (!known) throw contentDamaged()
    known.readers++
    try {
      yield* readContent(known.handle, hash, location, chunkBytes)
    } finally {
      known.readers--
      this.#closeUnused(known)
    }
  }

  /** Whole contents without holes, in the order of `wanted`; undefined for others and for large ones. */
  async readSmall(wanted: readonly WantedContent[]): Promise<(Buffer | undefined)[]> {
    const found: (Buffer | undefined)[] = wanted.map(() => undefined)
    const runs = runsOf(wanted).map((run) => ({ ...run, known: this.#packs.get(run.pack) }))
    // None of the packs may be closed while another one is read.
    for (const { known } of runs) if (known) known.readers++
    try {
      for (const { known, offset, end, members } of runs) {
        if (!known) throw contentDamaged()
        const bytes = await readFully(known.handle, offset, end - offset)
        for (const at of members) found[at] = checked(wanted[at], bytes, offset)
      }
      return found
    } finally {
      for (const { known } of runs) {
        if (!known) continue
        known.readers--
        this.#closeUnused(known)
      }
    }
  }

  async #writable(): Promise<[string, Pack]> {
    const known = this.#current === undefined ? undefined : this.#packs.get(this.#current)
    if (this.#current !== undefined && known) return [this.#current, known]
    const { name, handle } = await this.#folder.createPack()
    const pack: Pack = { handle, bytes: 0, readers: 0, dropped: false }
    this.#packs.set(name, pack)
    this.#current = name
    return [name, pack]
  }

  #closeUnused(pack: Pack): void {
    if (pack.dropped && pack.readers === 0) pack.handle.close().catch(() => {})
  }
}
