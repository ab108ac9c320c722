/** A value that is opened with its first use and then kept. If opening it fails, the next use tries again. */
export class Lazy<T> {
  readonly #open: () => Promise<T>
  #opened: Promise<T> | undefined

  constructor(open: () => Promise<T>) {
    this.#open = open
  }

  /** The value if anybody has asked for it; opens nothing. */
  get opened(): Promise<T> | undefined {
    return this.#opened
  }

  get(): Promise<T> {
    this.#opened ??= this.#open().catch((error) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }
}
