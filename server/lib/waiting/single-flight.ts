/** Shares one run of a job among all who ask while it runs. */
export class SingleFlight<T> {
  #running: Promise<T> | undefined

  /** The run that is under way, if any. */
  get running(): Promise<T> | undefined {
    return this.#running
  }

  run(job: () => Promise<T>): Promise<T> {
    this.#running ??= job().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }
}
