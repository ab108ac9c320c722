/** Finds the values that a sentence spells out: quoted texts, addresses, paths, dates, numbers and ids, each with its place. */

export type LiteralKind =
  | 'quoted'
  | 'url'
  | 'email'
  | 'glob'
  | 'path'
  | 'repo'
  | 'date'
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

const PATH_PART = String.raw`[\p{L}\p{M}\p{N}_.@+-]+`
/** In this order: what one kind has taken, the next ones don't see. */
const PATTERNS: [LiteralKind, RegExp][] = [
  ['quoted', /"([^"]+)"|(?<!\w)'([^']+)'(?!\w)|“([^”]+)”|`([^`]+)`/g],
  ['url', /\b[a-z][a-z0-9+.-]{1,15}:\/\/[^\s"'<>]*[^\s"'<>.,;!?)]/gi],
  ['email', /\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b/g],
  ['glob', /(?<!\S)[\w./~@-]*\*[\w./*{}@-]*(?<![.,])/g],
  [
    'path',
    new RegExp(
      String.raw`(?<![\p{L}\p{N}_/])(?:~|\.{1,2})?/${PATH_PART}(?:/${PATH_PART})*/?(?<![.,])|` +
        String.raw`(?<![\p{L}\p{N}_./~-])${PATH_PART}(?:/${PATH_PART}){2,}/?(?<![.,])`,
      'gu'
    )
  ],
  ['repo', /(?<![\w./~-])(?!and\/or\b)(?=[\w.-]*[A-Za-z])[A-Za-z0-9][\w.-]*\/[A-Za-z0-9](?:[\w.-]*\w)?(?![\w/])/g],
  ['date', /(?<![\w-])\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w-])/g],
  ['file', /(?<![\w./~-])[A-Za-z0-9_][\w-]*(?:\.[\w-]+)*\.[A-Za-z][A-Za-z0-9]{0,4}(?![\w/-])(?!\.\w)/g],
  // Both numbers of "1280x720".
  [
    'number',
    /(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-]|\.\d)|(?<![\w.-])\d+(?=\s?[x×]\s?\d+(?![\w.]))|(?<=\d\s?[x×]\s?)\d+(?![\w.])/g
  ],
  ['id', /(?<![\w-])(?=[\w-]*\d)[\w-]*[A-Za-z-][\w-]*/g]
]

/** In the order of the sentence. */
export function literalsIn(sentence: string): Literal[] {
  let rest = sentence
  const found: Literal[] = []
  for (const [kind, pattern] of PATTERNS) {
    for (const match of rest.matchAll(pattern)) {
      const text = match[1] ?? match[2] ?? match[3] ?? match[4] ?? match[0]
      found.push({ kind, text, start: match.index, end: match.index + match[0].length })
    }
    // Same length, so that places stay.
    rest = rest.replace(pattern, (text) => ' '.repeat(text.length))
  }
  return found.toSorted((a, b) => a.start - b.start)
}

/** `owner/name`, also as the address of a repository. */
export function repositoryOf({ kind, text }: Literal): { owner: string; repo: string } | undefined {
  const pattern =
    kind === 'url'
      ? /^https?:\/\/(?:www\.)?git(?:hub|lab)\.com\/([\w.-]+)\/([\w.-]+?)(?:\.git)?(?:$|[/?#])/
      : /^([\w.-]+)\/([\w.-]+)$/
  if (kind !== 'repo' && kind !== 'url') return undefined
  const [, owner, repo] = pattern.exec(text) ?? []
  return owner !== undefined && repo !== undefined ? { owner, repo } : undefined
}
