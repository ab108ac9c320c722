/** Limits how many jobs run at once; the others wait in a queue. If fifty processes start together, none is ready in time. */
export class StartGate {
  readonly #width: number
  readonly #waiting: (() => void)[] = []
  #inside = 0

  constructor(width: number) {
    this.#width = width
  }

  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#inside >= this.#width) await new Promise<void>((enter) => this.#waiting.push(enter))
    else this.#inside++
    try {
      return await job()
    } finally {
      // The slot passes to the next in the queue without becoming free in between.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#inside--
    }
  }
}
