/** What the start is busy with, for whoever looks: the last word stays, listeners hear every one. */
export class ProgressBoard<Stage extends string> {
  readonly #listeners = new Set<(progress: { stage: Stage; message: string }) => void>()
  #current: { stage: Stage; message: string }

  constructor(stage: Stage, message: string) {
    this.#current = { stage, message }
  }

  get current(): { stage: Stage; message: string } {
    return this.#current
  }

  say(stage: Stage, message: string): void {
    this.#current = { stage, message }
    for (const listener of this.#listeners) listener(this.#current)
  }

  onSay(listener: (progress: { stage: Stage; message: string }) => void): void {
    this.#listeners.add(listener)
  }
}
