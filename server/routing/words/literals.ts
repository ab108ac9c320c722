/** Finds the values that a sentence spells out: quoted texts, addresses, paths, dates, numbers and ids, each with its place. */

export type LiteralKind =
  | 'quoted'
  | 'url'
  | 'email'
  | 'date'
  | 'glob'
  | 'path'
  /** Two names with a slash, such as "owner/name". */
  | 'repo'
  | 'file'
  | 'number'
  /** Letters with digits, such as "nginx-123". */
  | 'id'

export interface Literal {
  kind: LiteralKind
  text: string
  /** The literal's place in the sentence, quotation marks included. */
  start: number
  end: number
}

const START = String.raw`(?<![\p{L}\p{N}_])`
const PATH_PART = String.raw`[\p{L}\p{M}\p{N}_.@+~-]+`
const ADDRESS = String.raw`[^\s"'\x60<>]*[^\s"'\x60<>.,;!?)]`
/**
 * The order matters: a value belongs to the first kind that matches it. A pattern's first group, if any, is the value itself. No pattern
 * may match from inside its own match: that would take quadratic time.
 */
const PATTERNS: [LiteralKind, RegExp][] = [
  ['quoted', /"([^"]+)"|(?<!\w)'([^']+)'(?!\w)|“([^“”]+)”|«([^«»]+)»|`([^`]+)`/g],
  ['url', new RegExp(String.raw`\b[a-z][a-z0-9+.-]{1,20}:\/\/${ADDRESS}|\bwww\.${ADDRESS}`, 'gi')],
  ['email', new RegExp(String.raw`${START}[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5}`, 'gu')],
  [
    'date',
    /(?<![\w/.-])\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w/-])|(?<![\w/.-])\d{1,2}([/.])\d{1,2}\1\d{2,4}(?![\w/-])/g
  ],
  ['glob', /(?<!\S)[\w./~@-]*\*[\w./*{}@-]*(?<![.,])/g],
  [
    'path',
    new RegExp(
      String.raw`(?<![\p{L}\p{N}_/])(?:~|\.{1,2})?/${PATH_PART}(?:/${PATH_PART})*/?(?<![.,])|` +
        String.raw`(?<![\p{L}\p{M}\p{N}_.@+/~-])${PATH_PART}(?:/${PATH_PART}){2,}/?(?<![.,])|` +
        String.raw`(?<![\p{L}\p{N}_])[A-Za-z]:\\[\w.\\-]+(?<![.,])`,
      'gu'
    )
  ],
  ['repo', /(?<![\w./~-])(?!and\/or\b)(?=[\w.-]*[A-Za-z])[A-Za-z0-9][\w.-]*\/[A-Za-z0-9](?:[\w.-]*\w)?(?![\w/])/g],
  ['file', /(?<![\w./~-])[A-Za-z0-9_][\w-]*(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}(?![\w/-])(?!\.\w)/g],
  // "50%", "#42", and both numbers of "1280x720".
  [
    'number',
    /(?<![\w.-])#?(-?\d+(?:\.\d+)?)(?![\w-]|\.\d)%?|(?<![\w.-])\d+(?=\s?[x×]\s?\d+(?![\w.]))|(?<=\d\s?[x×]\s?)\d+(?![\w.])/g
  ],
  ['id', /(?<![\w-])(?=[\w-]*\d)[\w-]*[A-Za-z-][\w-]*/g]
]

/** In the order of the sentence. */
export function literalsIn(sentence: string): Literal[] {
  let rest = sentence
  const found: Literal[] = []
  for (const [kind, pattern] of PATTERNS) {
    for (const match of rest.matchAll(pattern)) {
      const value = kind === 'date' ? undefined : match.slice(1).find((group) => group !== undefined)
      found.push({ kind, text: value ?? match[0], start: match.index, end: match.index + match[0].length })
    }
    // Blanks of the same length keep the positions of the rest.
    rest = rest.replace(pattern, (text) => ' '.repeat(text.length))
  }
  return found.toSorted((a, b) => a.start - b.start)
}
