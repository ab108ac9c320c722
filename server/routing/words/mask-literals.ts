/**
 * Takes the values out of a request. They say what to work on, not what to do: a folder that is named like a word of a tool's
 * description says nothing about that tool. Only their kind counts.
 */
import { type Literal, literalsIn } from './literals.ts'

type MaskedKind = 'url' | 'email' | 'path' | 'date' | 'id' | 'number' | 'quoted'

interface Masked {
  /** The request without its values, or the request itself if it has nothing else. */
  text: string
  kinds: ReadonlySet<MaskedKind>
}

const MAX_BEFORE = 40
/** Left over from values such as 10:30, 192.0.2.1 or gpt-4. */
const DIGITS = /(?<![\p{L}\p{N}_])\d[\d.,:]{0,30}(?![\p{L}\p{N}_])/gu
/** "17 + 25" and "add up 2 and 3" have no word left for what they ask. */
const SUM =
  /(?<![\w.])\d{1,20}(?:\.\d{1,20})?\s{0,3}(?:\+|\bplus\b)\s{0,3}-?\d|\badd\s+(?:(?:up|together)\s+)?-?\d{1,20}(?:\.\d{1,20})?\s+(?:and|to|plus)\s+-?\d/i
const ROOTED = /^(?:~|\.{1,2})?\/|^[A-Za-z]:\\/
const FILE_ENDING = /\.(?:[a-z]{1,5}\d?|[A-Z]{2,4})$/
/** Everyday words with a dot; as file names they would hide what is asked for. */
const DOTTED = /\.(?:js|io|ai|com|org|net|dev|app|co|e|g|i)$/iu
/** Nobody says these as words, unlike "mp3" or "H264". */
const ID =
  /^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}|[A-Z]{2,10}-\d{1,8})$/i

/** The kind of value that the search sees instead; undefined if it is a word: "Node.js", "and/or", "client/server", "mp3". */
function maskedKind({ kind, text, start, end }: Literal, request: string): MaskedKind | undefined {
  switch (kind) {
    case 'number':
      // "200x200" is one word.
      return /\p{L}/u.test(`${request[start - 1] ?? ''}${request[end] ?? ''}`) ? undefined : kind
    case 'glob':
      return undefined
    case 'repo':
      return FILE_ENDING.test(text) ? 'path' : undefined
    case 'file':
      // "example.com.tr" is a name.
      return /^\D[^.]*\.[^.]*$/.test(text) && FILE_ENDING.test(text) && !DOTTED.test(text) ? 'path' : undefined
    case 'path':
      return ROOTED.test(text) || FILE_ENDING.test(text) ? 'path' : undefined
    case 'id':
      return ID.test(text) ? 'id' : undefined
    default:
      return kind
  }
}

/** Whether a value belongs to a name, such as 17 in "C++ 17"; `before` is the text up to it. */
type IsNamePart = (value: string, before: string) => boolean

export function maskLiterals(request: string, isNamePart: IsNamePart = () => false): Masked {
  const kinds = new Set<MaskedKind>()
  const isName = (value: string, whole: string, at: number) =>
    isNamePart(value, whole.slice(Math.max(0, at - MAX_BEFORE), at))
  const masked = replaced(request, (literal) => {
    const kind = maskedKind(literal, request)
    if (kind === undefined || isName(literal.text, request, literal.start)) return
    kinds.add(kind)
    return ' '
  })
  const sum = SUM.test(request) ? ' sum' : ''
  const text = masked.replace(DIGITS, (found, at: number) => (isName(found, masked, at) ? found : ' '))
  return { text: (/\p{L}/u.test(text) ? text : request) + sum, kinds }
}

/** Nouns that replace literals before embedding. The words inside the literals would pull it to the wrong tools. */
const NOUNS: Partial<Record<MaskedKind, string>> = { url: 'a web page', email: 'an email address', path: 'a file' }

/** Replaces addresses and paths with what they are. Other values stay, because their meaning helps. */
export function nameLiterals(request: string): string {
  return replaced(request, (literal) => NOUNS[maskedKind(literal, request) ?? 'id'])
}

function replaced(request: string, by: (literal: Literal) => string | undefined): string {
  let text = ''
  let from = 0
  for (const literal of literalsIn(request)) {
    const other = by(literal)
    if (other === undefined) continue
    text += request.slice(from, literal.start) + other
    from = literal.end
  }
  return text + request.slice(from)
}

/** Parameter names that take a value of this kind. Numbers, dates and quoted text fit too many parameters to say anything. */
const TAKES: Partial<Record<MaskedKind, RegExp>> = {
  path: /^(?:.*[_-])?(?:path|paths|file|files|filename|filepath|dir|directory|folder|source|destination|root)s?(?:[_-]?name)?$|(?:Path|File|Dir|Directory|Folder)(?:Name)?$/,
  url: /^(?:.*[_-])?(?:url|urls|uri|link|href|website|domain|site|page)$|(?:Url|URL|Uri|URI|Link)$/,
  email: /^(?:.*[_-])?(?:e?mail|email_?address|recipients?|to|cc|attendees?)$|(?:Email|Recipients?)$/
}

/** The kinds of values that a tool takes; `params` has one parameter per line, its name first. */
export function kindsTaken(params: string): Set<MaskedKind> {
  const names = params.split('\n').map((line) => /^[\w.-]*/.exec(line.trim())?.[0] ?? '')
  const found = Object.entries(TAKES).filter(([, name]) => names.some((each) => name.test(each)))
  return new Set(found.map(([kind]) => kind as MaskedKind))
}
