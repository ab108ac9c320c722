/** Limits how many jobs run at once; the others wait in a queue. If fifty processes start together, none is ready in time. */
export class StartGate {
  readonly #width: number
  readonly #waiting: { enter(): void; refuse(why: unknown): void }[] = []
  #inside = 0

  constructor(width: number) {
    this.#width = width
  }

  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#inside >= this.#width) {
      await new Promise<void>((enter, refuse) => this.#waiting.push({ enter, refuse }))
    } else this.#inside++
    try {
      return await job()
    } finally {
      // The slot passes to the next in the queue without becoming free in between.
      const next = this.#waiting.shift()
      if (next) next.enter()
      else this.#inside--
    }
  }

  /** Call it when there is no point in waiting any longer: everyone in the queue fails with this error. */
  refuseWaiting(why: unknown): void {
    for (const { refuse } of this.#waiting.splice(0)) refuse(why)
  }
}
