/**
 * Console text as rows of styled runs, for a view that draws only visible rows. Understands colours and carriage returns; drops every
 * other escape sequence. The number of rows is limited: the oldest are dropped and counted.
 */
interface Run {
  text: string
  className: string
}
export type Row = Run[]

const MAX_ROWS = 20_000
const MAX_ROW_CHARS = 1000
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what this is about
const TOKEN = /\x1b\[([0-9;:]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|\r\n|\n|\r/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: likewise
const OPEN_ESCAPE = /\x1b(?:\[[0-9;:]*|\][^\x07\x1b]{0,200})?$/
const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']

interface Style {
  colour: string
  bold: boolean
  dim: boolean
  underline: boolean
}
const PLAIN: Style = { colour: '', bold: false, dim: false, underline: false }

export class AnsiLines {
  rows: Row[] = [[]]
  droppedRows = 0
  #style: Style = PLAIN
  #rowChars = 0
  #rest = ''
  #returned = false

  /** `className` is added to every run, to distinguish stderr from stdout. */
  push(chunk: string, className = ''): void {
    let text = this.#rest + chunk
    this.#rest = OPEN_ESCAPE.exec(text)?.[0] ?? (text.endsWith('\r') ? '\r' : '')
    text = text.slice(0, text.length - this.#rest.length)
    let from = 0
    for (const match of text.matchAll(TOKEN)) {
      this.#write(text.slice(from, match.index), className)
      from = match.index + match[0].length
      if (match[0] === '\n' || match[0] === '\r\n') this.#newRow()
      else if (match[0] === '\r') this.#returned = true
      else if (match[2] === 'm') this.#style = restyled(this.#style, match[1] ?? '')
    }
    this.#write(text.slice(from), className)
    this.#trim()
  }

  #write(text: string, className: string): void {
    if (text === '') return
    if (this.#returned) {
      this.rows[this.rows.length - 1] = []
      this.#rowChars = 0
      this.#returned = false
    }
    for (let from = 0; from < text.length; ) {
      if (this.#rowChars >= MAX_ROW_CHARS) this.#newRow()
      const piece = text.slice(from, from + MAX_ROW_CHARS - this.#rowChars)
      this.rows.at(-1)?.push({ text: piece, className: `${classesOf(this.#style)} ${className}`.trim() })
      this.#rowChars += piece.length
      from += piece.length
    }
  }

  #newRow(): void {
    this.rows.push([])
    this.#rowChars = 0
    this.#returned = false
  }

  #trim(): void {
    const over = this.rows.length - MAX_ROWS
    // Drop many rows at once, so that small chunks don't move the whole array each time.
    if (over < MAX_ROWS / 10) return
    this.rows.splice(0, over)
    this.droppedRows += over
  }
}

function restyled(before: Style, codes: string): Style {
  let style = before
  const numbers = codes === '' ? [0] : codes.split(/[;:]/).map(Number)
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0
    if (code === 0) style = PLAIN
    else if (code === 1) style = { ...style, bold: true }
    else if (code === 2) style = { ...style, dim: true }
    else if (code === 4) style = { ...style, underline: true }
    else if (code === 22) style = { ...style, bold: false, dim: false }
    else if (code === 24) style = { ...style, underline: false }
    else if (code === 39) style = { ...style, colour: '' }
    else if (code >= 30 && code <= 37) style = { ...style, colour: COLOURS[code - 30] ?? '' }
    else if (code >= 90 && code <= 97) style = { ...style, colour: COLOURS[code - 90] ?? '' }
    else if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4
  }
  return style
}

function classesOf({ colour, bold, dim, underline }: Style): string {
  return [colour && `ansi-${colour}`, bold && 'font-bold', dim && 'ansi-dim', underline && 'underline']
    .filter(Boolean)
    .join(' ')
}
