import { AppError } from '../lib/errors.ts'

/** Limits the open sockets of each person or address. */
export class OpenSockets {
  readonly #max: number
  readonly #whose: string
  readonly #counts = new Map<string, number>()

  constructor(max: number, whose = 'You have') {
    this.#max = max
    this.#whose = whose
  }

  countOf(person: string): number {
    return this.#counts.get(person) ?? 0
  }

  /** Returns a function that releases the socket. Throws if the person has too many. */
  enter(person: string): () => void {
    const count = this.countOf(person)
    if (count >= this.#max) {
      const message = `${this.#whose} ${this.#max} connections open: close some tabs or clients.`
      throw new AppError('unavailable', 'too_many_connections', message)
    }
    this.#counts.set(person, count + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const left = (this.#counts.get(person) ?? 1) - 1
      if (left > 0) this.#counts.set(person, left)
      else this.#counts.delete(person)
    }
  }
}
