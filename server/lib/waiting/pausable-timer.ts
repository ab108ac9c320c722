/** Calls `onOver` once after this much time in which it was not paused. It begins paused. */
export class PausableTimer {
  readonly #onOver: () => void
  #left: number
  #since = 0
  #timer: NodeJS.Timeout | undefined

  constructor(ms: number, onOver: () => void) {
    this.#left = ms
    this.#onOver = onOver
  }

  resume(): void {
    if (this.#timer) return
    this.#since = performance.now()
    this.#timer = setTimeout(this.#onOver, Math.max(0, this.#left))
  }

  pause(): void {
    if (!this.#timer) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#left -= performance.now() - this.#since
  }
}
