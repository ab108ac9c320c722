/** Shorter values reveal little, and occur in ordinary words. */
export const MIN_SECRET = 4
const MIN_SECRET_LINE = 8
/** The first and last line of a key file are the same in all of them. */
const HEADING = /^-----[A-Z ]+-----$/

/** The secret values that this process has seen, so that what it writes down can be cleared of them. */
export class KnownSecrets {
  readonly #values = new Set<string>()
  #forms: string[] = []

  add(values: Iterable<string | undefined>): void {
    for (const value of values) {
      if (value === undefined || value.length < MIN_SECRET || this.#values.has(value)) continue
      this.#values.add(value)
      const forms = [value, JSON.stringify(value).slice(1, -1), ...linesOf(value)]
      // The longest first: one may be a part of another.
      this.#forms = [...new Set([...this.#forms, ...forms])].sort((a, b) => b.length - a.length)
    }
  }

  /** The number of characters at the beginning of the text that may be the rest of a secret that was cut in two. */
  restAtStart(text: string): number {
    return this.#longest((form, size) => text.startsWith(form.slice(-size)))
  }

  /** The number of characters at the end of the text that may be the beginning of a secret that continues in the next piece. */
  beginningAtEnd(text: string): number {
    return this.#longest((form, size) => text.endsWith(form.slice(0, size)))
  }

  #longest(fits: (form: string, size: number) => boolean): number {
    let longest = 0
    for (const form of this.#forms) {
      let size = form.length - 1
      while (size > longest && !fits(form, size)) size--
      longest = Math.max(longest, size)
    }
    return longest
  }

  redact(text: string): string {
    let clean = text
    for (const form of this.#forms) if (clean.includes(form)) clean = clean.replaceAll(form, '[secret]')
    return clean
  }
}

/** Logs are written line by line, so a secret of several lines, such as a key file, is also redacted by line. */
function linesOf(value: string): string[] {
  const lines = value.split(/\r?\n/)
  return lines.length === 1 ? [] : lines.filter((line) => line.length >= MIN_SECRET_LINE && !HEADING.test(line))
}
