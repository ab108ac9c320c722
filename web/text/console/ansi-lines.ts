/**
 * Console text as rows of styled runs, for a view that draws only visible rows. Follows what progress bars do: carriage returns,
 * movements of the cursor and erasing, within the last rows. Other escape sequences are dropped. The number of rows is limited: the
 * oldest are dropped and counted. The model gets everything, so `isMissing` says whether a text is not to be seen here; `isRaw` shows
 * every character instead.
 */
import { isWebAddress } from '../link-target.ts'
import { type Look, lookOf, PLAIN_STYLE, restyled } from './text-look.ts'

interface Run {
  text: string
  look: Look
  /** The address of a link (OSC 8). Its text may be anything. */
  href?: string | undefined
}
export type Row = Run[]

const MAX_ROWS = 100_000
const MAX_ROW_CHARS = 1000
/** Rows that the cursor can go back to, as on a screen. */
const SCREEN_ROWS = 200
const MAX_BLANK = 200
/** A longer sequence is not one: it is shown as text. */
const MAX_STRING = 4096
const CSI = String.raw`\x1b\[([0-?]{0,64})[ -/]{0,4}([@-~])`
const STRING = String.raw`\x1b([\]PX^_])([^\x07\x1b]{0,${MAX_STRING}})(?:\x07|\x1b\\)`
const TOKEN = new RegExp(`${CSI}|${STRING}|\\x1b[ -/][0-~]|\\x1b([0-~])|\\r\\n|[\\n\\r\\b\\x07\\x0e\\x0f]`, 'g')
/** A sequence or a character whose end has not arrived yet. */
const OPEN = new RegExp(
  String.raw`(?:\x1b(?:\[[0-?]{0,64}[ -/]{0,4}|[\]PX^_][^\x07\x1b]{0,${MAX_STRING}}\x1b?|[ -/])?|[\r\ud800-\udbff])$`
)

const LINE_END = /\r?\n/g
/** Sequences that programs use. Others could spell out a text, letter by letter. */
const USUAL_FINALS = '[A-HJ-MPSTXf-hl-nr-ud@`]'
const USUAL = new RegExp(
  String.raw`^\x1b(?:\[[0-?]*[ -/]*${USUAL_FINALS}|[78=>cDEHM]|[()][AB0])$|^[\n\r\b\x07\x0e\x0f]`
)
/** Text this far to the right is out of sight. */
const FAR = /\s{100,}\S/

export class AnsiLines {
  rows: Row[] = [[]]
  droppedRows = 0
  /** Text was erased, written over, or part of a sequence that shows nothing. */
  isMissing = false
  readonly isRaw: boolean
  #style = PLAIN_STYLE
  #href: string | undefined
  #looks = new Map<string, Look>()
  #row = 0
  #column = 0
  /** Number of characters in the cursor's row. */
  #length = 0
  #saved = { row: 0, column: 0 }
  #rest = ''

  constructor({ isRaw = false } = {}) {
    this.isRaw = isRaw
  }

  /** `className` is added to every run, to distinguish stderr from stdout. */
  push(chunk: string, className = ''): void {
    let text = this.#rest + chunk
    this.#rest = OPEN.exec(text.slice(-MAX_STRING - 10))?.[0] ?? ''
    text = text.slice(0, text.length - this.#rest.length)
    let from = 0
    for (const match of text.matchAll(this.isRaw ? LINE_END : TOKEN)) {
      if (match.index > from) this.#write(text.slice(from, match.index), className)
      from = match.index + match[0].length
      this.#obey(match)
    }
    if (from < text.length) this.#write(text.slice(from), className)
    this.#trim()
  }

  /** No more text comes: a sequence that was begun is shown, so that it hides nothing. */
  end(): void {
    const rest = this.#rest
    this.#rest = ''
    if (rest !== '' && (rest !== '\r' || this.isRaw)) this.#write(rest, '')
  }

  /** The text of a row, as drawn. */
  textOf(row: number): string {
    return (this.rows[row] ?? []).map(({ text }) => text).join('')
  }

  #obey([sequence, codes = '', final, kind, body = '', short]: RegExpMatchArray): void {
    if (kind === undefined && !USUAL.test(sequence)) this.isMissing = true
    if (final === 'm') this.#style = /^[\d;:]*$/.test(codes) ? restyled(this.#style, codes) : this.#style
    else if (final !== undefined) this.#control(final, codes)
    else if (kind === ']' && body.startsWith('8;')) this.#link(body)
    else if (kind !== undefined) this.#lose(body)
    else if (sequence === '\n' || sequence === '\r\n') this.#moveTo(this.#row + 1, 0)
    else if (sequence === '\r') this.#column = 0
    else if (sequence === '\b') this.#column = Math.max(0, this.#column - 1)
    else if (short === '7') this.#saved = { row: this.#row, column: this.#column }
    else if (short === '8') this.#moveTo(this.#saved.row, this.#saved.column)
    else if (short === 'M') this.#moveTo(this.#row - 1, this.#column)
  }

  #control(final: string, codes: string): void {
    const [first = 0, second = 0] = codes.split(';').map((code) => Math.min(9999, Number(code) || 0))
    const by = Math.max(1, first)
    if (final === 'A') this.#moveTo(this.#row - by, this.#column)
    else if (final === 'B') this.#moveTo(Math.min(this.#row + by, this.rows.length - 1), this.#column)
    else if (final === 'C') this.#column = Math.min(MAX_ROW_CHARS - 1, this.#column + by)
    else if (final === 'D') this.#column = Math.max(0, this.#column - by)
    else if (final === 'E') this.#moveTo(Math.min(this.#row + by, this.rows.length - 1), 0)
    else if (final === 'F') this.#moveTo(this.#row - by, 0)
    else if (final === 'G') this.#column = Math.min(MAX_ROW_CHARS - 1, by - 1)
    else if (final === 'H' || final === 'f') this.#home(by, Math.max(1, second))
    else if (final === 'K') this.#eraseInRow(first)
    else if (final === 'J') this.#eraseBelow(first)
    else if (final === 'X') this.#replace(' '.repeat(Math.min(by, MAX_ROW_CHARS - this.#column)), lookOf(PLAIN_STYLE))
  }

  /** The rows of an old screen stay above, so that nothing that was printed gets lost. */
  #home(row: number, column: number): void {
    this.#moveTo(this.#top() + Math.min(row, SCREEN_ROWS) - 1, Math.min(column, MAX_ROW_CHARS) - 1)
  }

  #screen = 0
  #top(): number {
    return Math.max(this.#screen, this.rows.length - SCREEN_ROWS)
  }

  #moveTo(row: number, column: number): void {
    this.#row = Math.max(this.#top(), row, 0)
    while (this.rows.length <= this.#row) this.rows.push([])
    this.#column = column
    this.#length = this.textOf(this.#row).length
  }

  #lose(text: string): void {
    this.isMissing ||= text.trim() !== ''
  }

  #eraseInRow(what: number): void {
    const row = this.rows[this.#row] ?? []
    const erased = [this.#column, 0, 0][what]
    const kept = [undefined, this.#column + 1, undefined][what]
    if (erased !== undefined) this.#lose(this.textOf(this.#row).slice(erased, kept))
    if (what === 2) this.rows[this.#row] = []
    else if (what === 0) this.rows[this.#row] = sliced(row, 0, this.#column)
    else if (what === 1) {
      const blank = { text: ' '.repeat(Math.min(this.#column + 1, this.#length)), look: lookOf(PLAIN_STYLE) }
      this.rows[this.#row] = [blank, ...sliced(row, this.#column + 1)]
    }
    this.#length = this.textOf(this.#row).length
  }

  #eraseBelow(what: number): void {
    if (what === 2 || what === 3) {
      this.#screen = this.rows.length
      this.#moveTo(this.#screen, this.#column)
    } else if (what === 0) {
      this.#eraseInRow(0)
      for (let row = this.#row + 1; row < this.rows.length; row++) this.#lose(this.textOf(row))
      this.rows.length = this.#row + 1
    }
  }

  #link(body: string): void {
    const address = body.slice(body.indexOf(';', 2) + 1)
    this.#href = isWebAddress(address) ? address : undefined
    // The view shows the host at most.
    this.#lose(body.slice(3))
  }

  #write(text: string, className: string): void {
    const look = this.#look(className)
    if (FAR.test(text)) this.isMissing = true
    for (let from = 0; from < text.length; ) {
      const isPair = /[\ud800-\udbff]/.test(text[from] ?? '')
      if (this.#column >= MAX_ROW_CHARS - (isPair ? 1 : 0)) this.#moveTo(this.#row + 1, 0)
      const piece = headOf(text, from, MAX_ROW_CHARS - this.#column)
      this.#replace(piece, look)
      this.#column += piece.length
      from += piece.length
    }
  }

  /** Equal looks are one object, so that runs can be joined. */
  #look(className: string): Look {
    const key = `${className}|${Object.values(this.#style).join('|')}`
    const known = this.#looks.get(key)
    if (known) return known
    if (this.#looks.size > 1000) this.#looks.clear()
    const look = lookOf(this.#style, className)
    this.#looks.set(key, look)
    return look
  }

  /** Puts text at the cursor, over what is there. Does not move the cursor. */
  #replace(text: string, look: Look): void {
    const row = this.rows[this.#row] ?? []
    const length = this.#length
    // A few characters must not become a megabyte of spaces.
    const at = Math.min(this.#column, length + MAX_BLANK)
    this.#column = at
    const run = { text, look, ...(this.#href !== undefined && { href: this.#href }) }
    this.#length = Math.max(length, at + text.length)
    if (at < length) {
      const old = this.isMissing ? text : this.textOf(this.#row).slice(at, at + text.length)
      if (!text.startsWith(old)) this.#lose(old)
      this.rows[this.#row] = [...sliced(row, 0, at), run, ...sliced(row, at + text.length)]
      return
    }
    if (at > length) row.push({ text: ' '.repeat(at - length), look: lookOf(PLAIN_STYLE) })
    const last = row.at(-1)
    if (last?.look === look && last.href === run.href) last.text += text
    else row.push(run)
  }

  #trim(): void {
    const over = this.rows.length - MAX_ROWS
    // Drop many rows at once, so that small chunks don't move the whole array each time.
    if (over < MAX_ROWS / 10) return
    this.rows.splice(0, over)
    this.droppedRows += over
    this.#row = Math.max(0, this.#row - over)
    this.#screen = Math.max(0, this.#screen - over)
    this.#saved.row = Math.max(0, this.#saved.row - over)
  }
}

/** At most `room` characters, without half of a pair at the end. */
function headOf(text: string, from: number, room: number): string {
  const piece = text.slice(from, from + room)
  const isCut = from + room < text.length && piece.length > 1 && /[\ud800-\udbff]$/.test(piece)
  return isCut ? piece.slice(0, -1) : piece
}

/** A part of a row. Half of a character that is cut becomes a space. */
function sliced(row: Row, from: number, to = Number.POSITIVE_INFINITY): Row {
  const part: Row = []
  let at = 0
  for (const run of row) {
    const start = at
    at += run.text.length
    if (at <= from || start >= to) continue
    const text = run.text.slice(Math.max(0, from - start), to - start)
    part.push({ ...run, text: text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, ' ') })
  }
  return part
}
