/** Lets so many start at once and the others wait in line: fifty processes starting together start none in time. */
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
      // The place goes to the next in line without becoming free in between.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#inside--
    }
  }
}
