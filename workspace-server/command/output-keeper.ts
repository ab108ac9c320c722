import { plural } from '../../server/lib/plural.ts'
import { wholeCharactersFromStart, wholeCharactersToEnd } from '../files/utf8.ts'

export interface KeptOutput {
  text: string
  /** Bytes left out between the beginning and the end. */
  omittedBytes: number
}

/** Thousands of tiny chunks would cost more than their bytes. */
const MAX_PIECES = 1000

/** Keeps the first and the last bytes of a stream of any length. */
export class OutputKeeper {
  readonly #limit: number
  #head: Buffer[] = []
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
      if (this.#head.length > MAX_PIECES) this.#head = [Buffer.concat(this.#head)]
    }
    const forTail = chunk.subarray(forHead.length)
    if (forTail.length === 0) return
    this.#tail.push(forTail)
    this.#tailBytes += forTail.length
    if (this.#tailBytes > 2 * this.#limit || this.#tail.length > MAX_PIECES) this.#compact()
  }

  /** Both ends, or less of them: at most `limit` bytes each. */
  result(limit = this.#limit): KeptOutput {
    this.#compact()
    const whole = Buffer.concat([...this.#head, ...this.#tail])
    const isSmall = whole.length === this.#total && whole.length <= 2 * limit
    if (isSmall) return { text: whole.toString('utf8'), omittedBytes: 0 }
    const start = wholeCharactersFromStart(whole.subarray(0, limit))
    const end = wholeCharactersToEnd(whole.subarray(-limit))
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
