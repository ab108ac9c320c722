/** Parses JSON and remembers the line of each member of an object, so that an error can name the place. */
import { getNodeValue, parseTree, printParseErrorCode, visit } from 'jsonc-parser'

export interface LocatedJson {
  value: unknown
  /** The line of the member at this path, or of the nearest one above it that is known. */
  lineOf(path: string[]): number
}

export class JsonSyntaxError extends Error {
  readonly line: number
  /** "line 3, column 5" */
  readonly place: string
  constructor(line: number, column: number, reason: string) {
    super(reason)
    this.name = 'JsonSyntaxError'
    this.line = line
    this.place = `line ${line}, column ${column}`
  }
}

const MAX_DEPTH = 64
/** Several clients write comments and trailing commas. */
const LENIENT = { allowTrailingComma: true }
const REASONS: Record<string, string> = {
  PropertyNameExpected: 'a name in double quotes is missing',
  ValueExpected: 'a value is missing',
  ColonExpected: 'a colon is missing',
  CommaExpected: 'a comma is missing',
  EndOfFileExpected: 'something follows the end of the document',
  UnexpectedEndOfString: 'a text does not end',
  InvalidUnicode: 'a text has an invalid escape',
  InvalidEscapeCharacter: 'a text has an invalid escape',
  InvalidCharacter: 'a text has an invalid character'
}

/** Throws JsonSyntaxError. */
export function parseJsonWithLines(source: string): LocatedJson {
  const text = source.replace(/^\uFEFF/, '')
  const lines = new Map<string, number>()
  const checkDepth = (_at: number, _length: number, line: number, column: number, path: () => unknown[]) => {
    if (path().length >= MAX_DEPTH) throw new JsonSyntaxError(line + 1, column + 1, `more than ${MAX_DEPTH} levels`)
  }
  visit(
    text,
    {
      onObjectBegin: checkDepth,
      onArrayBegin: checkDepth,
      onObjectProperty(name, _at, _length, line, column, path) {
        const key = keyOf([...path(), name])
        if (lines.has(key)) throw new JsonSyntaxError(line + 1, column + 1, `"${name.slice(0, 80)}" occurs twice`)
        lines.set(key, line + 1)
      },
      onError(code, at, _length, line, column) {
        const reason = REASONS[printParseErrorCode(code)] ?? 'this is not JSON'
        throw new JsonSyntaxError(line + 1, column + 1, at < text.length ? reason : 'the file ends too early')
      }
    },
    LENIENT
  )
  const root = parseTree(text, [], LENIENT)
  return {
    value: root && getNodeValue(root),
    lineOf(path) {
      const known = path.map((_, at) => lines.get(keyOf(path.slice(0, at + 1))))
      return known.findLast((line) => line !== undefined) ?? 1
    }
  }
}

function keyOf(path: unknown[]): string {
  return JSON.stringify(path.map(String))
}
