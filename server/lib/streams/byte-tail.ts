/** Keeps the last bytes of a stream as a ring: flat memory, every byte copied once. */
export class ByteTail {
  readonly #maxBytes: number
  #ring: Buffer = Buffer.alloc(0)
  #end = 0
  #total = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  push(bytes: Buffer): void {
    if (bytes.length === 0) return
    // Most servers never write to stderr; the ring comes with the first byte.
    if (this.#ring.length === 0) this.#ring = Buffer.alloc(this.#maxBytes)
    const kept = bytes.subarray(-this.#maxBytes)
    const first = kept.copy(this.#ring, this.#end)
    if (first < kept.length) kept.copy(this.#ring, 0, first)
    this.#end = (this.#end + kept.length) % this.#maxBytes
    this.#total += bytes.length
  }

  /** Whether something came before what is left. */
  get isCut(): boolean {
    return this.#total > this.#maxBytes
  }

  /** A character cut in half at the front is left out. */
  text(): string {
    if (!this.isCut) return this.#ring.toString('utf8', 0, this.#total)
    const bytes = Buffer.concat([this.#ring.subarray(this.#end), this.#ring.subarray(0, this.#end)])
    let start = 0
    while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++
    return bytes.toString('utf8', start)
  }
}
