/** JSON that remembers on which line each member of an object begins, so that a complaint can name the place. */

export interface LocatedJson {
  value: unknown
  /** The line of the member at this path, or of the nearest one above it that is known. */
  lineOf(path: string[]): number
}

export class JsonSyntaxError extends Error {
  readonly line: number
  constructor(line: number, reason: string) {
    super(reason)
    this.name = 'JsonSyntaxError'
    this.line = line
  }
}

const MAX_DEPTH = 64
const LITERALS: Record<string, unknown> = { true: true, false: false, null: null }

/** Comments and trailing commas are taken as well: several clients write them. Throws JsonSyntaxError. */
export function parseJsonWithLines(text: string): LocatedJson {
  const reader = new Reader(text.startsWith('\uFEFF') ? text.slice(1) : text)
  const value = reader.document()
  return {
    value,
    lineOf(path) {
      for (let length = path.length; length > 0; length--) {
        const line = reader.lines.get(JSON.stringify(path.slice(0, length)))
        if (line !== undefined) return line
      }
      return 1
    }
  }
}

class Reader {
  readonly lines = new Map<string, number>()
  readonly #text: string
  readonly #path: string[] = []
  #at = 0
  #line = 1

  constructor(text: string) {
    this.#text = text
  }

  document(): unknown {
    const value = this.#value()
    this.#skip()
    if (this.#at < this.#text.length) throw this.#wrong('something follows the end of the document')
    return value
  }

  #value(): unknown {
    if (this.#path.length > MAX_DEPTH) throw this.#wrong(`more than ${MAX_DEPTH} levels`)
    this.#skip()
    const char = this.#text[this.#at]
    if (char === '{') return this.#object()
    if (char === '[') return this.#array()
    if (char === '"') return this.#string()
    const word = /^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/.exec(
      this.#text.slice(this.#at, this.#at + 40)
    )?.[0]
    if (word === undefined) throw this.#wrong(char === undefined ? 'the file ends too early' : `unexpected "${char}"`)
    this.#at += word.length
    return word in LITERALS ? LITERALS[word] : Number(word)
  }

  #object(): Record<string, unknown> {
    const entries = new Map<string, unknown>()
    this.#at++
    while (!this.#ends('}')) {
      if (this.#text[this.#at] !== '"') throw this.#wrong('a name in double quotes is missing')
      const line = this.#line
      const key = this.#string()
      if (entries.has(key)) throw this.#wrong(`"${key.slice(0, 80)}" stands here twice`)
      this.#path.push(key)
      this.lines.set(JSON.stringify(this.#path), line)
      this.#skip()
      if (this.#text[this.#at] !== ':') throw this.#wrong('a colon is missing')
      this.#at++
      entries.set(key, this.#value())
      this.#path.pop()
      this.#separator('}')
    }
    // Unlike assignment, this makes "__proto__" an ordinary member.
    return Object.fromEntries(entries)
  }

  #array(): unknown[] {
    const items: unknown[] = []
    this.#at++
    while (!this.#ends(']')) {
      this.#path.push(String(items.length))
      items.push(this.#value())
      this.#path.pop()
      this.#separator(']')
    }
    return items
  }

  #ends(close: string): boolean {
    this.#skip()
    if (this.#text[this.#at] !== close) return false
    this.#at++
    return true
  }

  #separator(close: string): void {
    this.#skip()
    if (this.#text[this.#at] === ',') this.#at++
    else if (this.#text[this.#at] !== close) throw this.#wrong(`a comma or "${close}" is missing`)
  }

  #string(): string {
    const match = /"(?:[^"\\\n]|\\.)*"/y
    match.lastIndex = this.#at
    const literal = match.exec(this.#text)?.[0]
    if (literal === undefined) throw this.#wrong('a text does not end')
    this.#at += literal.length
    try {
      return JSON.parse(literal)
    } catch {
      throw this.#wrong('a text has an invalid character or escape')
    }
  }

  #skip(): void {
    const blank = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y
    blank.lastIndex = this.#at
    const skipped = blank.exec(this.#text)?.[0] ?? ''
    for (const char of skipped) if (char === '\n') this.#line++
    this.#at += skipped.length
  }

  #wrong(reason: string): JsonSyntaxError {
    return new JsonSyntaxError(this.#line, reason)
  }
}
