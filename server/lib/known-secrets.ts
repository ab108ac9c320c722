const MIN_SECRET = 4

/** The secret values that this process has seen, so that what it writes down can be cleared of them. */
export class KnownSecrets {
  readonly #values = new Set<string>()
  #forms: string[] = []

  add(values: Iterable<string | undefined>): void {
    for (const value of values) {
      if (value === undefined || value.length < MIN_SECRET || this.#values.has(value)) continue
      this.#values.add(value)
      // As it is, and as it looks inside JSON. The longest first: one may be a part of another.
      this.#forms = [...new Set([...this.#forms, value, JSON.stringify(value).slice(1, -1)])].sort(
        (a, b) => b.length - a.length
      )
    }
  }

  redact(text: string): string {
    let clean = text
    for (const form of this.#forms) if (clean.includes(form)) clean = clean.replaceAll(form, '[secret]')
    return clean
  }
}
