interface Said<Stage> {
  stage: Stage
  message: string
}

/** The progress of startup. Keeps the last message, and passes every one on to the listeners. */
export class ProgressBoard<Stage extends string> {
  readonly #listeners = new Set<(said: Said<Stage>) => void>()
  current: Said<Stage>

  constructor(stage: Stage, message: string) {
    this.current = { stage, message }
  }

  say(stage: Stage, message: string): void {
    this.current = { stage, message }
    for (const listener of this.#listeners) listener(this.current)
  }

  onSay(listener: (said: Said<Stage>) => void): void {
    this.#listeners.add(listener)
  }
}
