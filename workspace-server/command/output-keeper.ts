import { plural } from '../../server/lib/plural.ts'
import { wholeCharactersFromStart, wholeCharactersToEnd } from '../files/utf8.ts'

export interface KeptOutput {
  text: string
  /** Bytes left out between the beginning and the end. */
  omittedBytes: number
}

/** Keeps the first and the last bytes of a stream of any length. */
export class OutputKeeper {
  readonly #limit: number
  readonly #head: Buffer[] = []
  #headBytes = 0
  #tail: Buffer[] = []
  #tailBytes = 0
  #total = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(chunk: Buffer): void {
    this.#total += chunk.length
    const forHead = chunk.subarray(0, this.#limit - this.#headBytes)
    if (forHead.length > 0) {
      this.#head.push(forHead)
      this.#headBytes += forHead.length
    }
    const forTail = chunk.subarray(forHead.length)
    if (forTail.length === 0) return
    this.#tail.push(forTail)
    this.#tailBytes += forTail.length
    // Compacted now and then: thousands of tiny chunks would cost more than their bytes.
    if (this.#tailBytes > 4 * this.#limit || this.#tail.length > 1000) this.#compact()
  }

  result(): KeptOutput {
    this.#compact()
    const head = Buffer.concat(this.#head)
    const tail = Buffer.concat(this.#tail)
    if (head.length + tail.length === this.#total)
      return { text: Buffer.concat([head, tail]).toString('utf8'), omittedBytes: 0 }
    const start = wholeCharactersFromStart(head)
    const end = wholeCharactersToEnd(tail)
    const omittedBytes = this.#total - start.length - end.length
    return { text: `${start}\n[… ${plural(omittedBytes, 'byte')} left out …]\n${end}`, omittedBytes }
  }

  #compact(): void {
    const joined = Buffer.concat(this.#tail)
    const kept = Buffer.from(joined.subarray(Math.max(0, joined.length - this.#limit)))
    this.#tail = [kept]
    this.#tailBytes = kept.length
  }
}
