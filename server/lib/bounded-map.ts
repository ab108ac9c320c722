/** A map that drops its oldest entry when it is full. Setting a key again makes its entry the newest. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number
  readonly #onDrop: (value: V) => void

  constructor(max: number, onDrop: (value: V) => void = () => {}) {
    super()
    this.#max = max
    this.#onDrop = onDrop
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#max) {
      for (const [oldest, dropped] of this) {
        this.delete(oldest)
        this.#onDrop(dropped)
        break
      }
    }
    return this
  }
}
