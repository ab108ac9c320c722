/**
 * Finds the values in a request (paths, addresses, numbers, ids, quoted text). They say what to work on, not what to do: a folder that
 * is named like a word of a tool's description says nothing about that tool. Only their kind counts.
 */

type LiteralKind = 'url' | 'email' | 'path' | 'date' | 'id' | 'number' | 'quoted'

interface Masked {
  /** The request without its values, or the request itself if it has nothing else. */
  text: string
  kinds: ReadonlySet<LiteralKind>
}

const START = '(?<![\\p{L}\\p{N}_])'
const END = '(?![\\p{L}\\p{N}_])'
/** In this order: an address contains paths, and a path numbers. Repetitions are bounded, so that no request can take long. */
const LITERALS: [LiteralKind, RegExp][] = [
  ['url', /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'`<>]+|\bwww\.[^\s"'`<>]+/giu],
  ['email', new RegExp(`${START}[\\w.+-]{1,64}@[\\w-]{1,64}(?:\\.[\\w-]{1,64}){1,5}`, 'gu')],
  // Quoted text may contain apostrophes, so a single quote only opens after a space and closes before one.
  [
    'quoted',
    /"[^"\n]{1,300}"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|`[^`\n]{1,300}`|(?<=^|[\s(:,=[])'[^'\n]{1,300}'(?=$|[\s.,;:!?)\]])/gu
  ],
  ['path', /(?<=^|[\s(=:,])(?:~|\.{1,2})?\/[\w.@+~-]+(?:\/[\w.@+~-]*)*|\b[A-Za-z]:\\[\w.\\-]+/gu],
  // A file name, also with its folders: "and/or" and "client/server" are words.
  [
    'path',
    new RegExp(
      `(?<![\\p{L}\\p{N}_./-])(?:[\\w-]{1,64}\\/){0,20}[\\w-]{1,100}\\.(?:[a-z]{1,5}\\d?|[A-Z]{2,4})${END}(?!\\.[a-z])`,
      'gu'
    )
  ],
  [
    'date',
    new RegExp(
      `${START}\\d{4}-\\d{1,2}-\\d{1,2}(?:[T ]\\d{1,2}:\\d{2}(?::\\d{2})?)?${END}|${START}\\d{1,2}[/.]\\d{1,2}[/.]\\d{2,4}${END}`,
      'gu'
    )
  ],
  [
    'id',
    new RegExp(
      `${START}(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?=[0-9a-f]*\\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64})${END}|${START}[A-Z]{2,10}-\\d{1,8}${END}|#\\d{1,8}\\b`,
      'giu'
    )
  ],
  ['number', new RegExp(`${START}[-+]?\\d[\\d.,:]{0,30}%?${END}`, 'gu')]
]

const MAX_BEFORE = 40

/** Everyday words with a dot; as file names they would hide what is asked for. */
const DOTTED = /\.(?:js|io|ai|com|org|net|dev|app|co|e|g|i)$/iu

/** "Node.js" and "e.g" are words, "1.5s" is a number. */
function isWord(kind: LiteralKind, found: string): boolean {
  return kind === 'path' && !/[/\\]/.test(found) && (DOTTED.test(found) || /^\d/.test(found))
}

/** Whether a value belongs to a name, such as 17 in "C++ 17"; `before` is the text up to it. */
type IsNamePart = (value: string, before: string) => boolean

export function maskLiterals(request: string, isNamePart: IsNamePart = () => false): Masked {
  const kinds = new Set<LiteralKind>()
  let text = request
  for (const [kind, pattern] of LITERALS) {
    text = text.replace(pattern, (found, at: number, whole: string) => {
      if (isWord(kind, found)) return found
      if (isNamePart(found, whole.slice(Math.max(0, at - MAX_BEFORE), at))) return found
      kinds.add(kind)
      return ' '
    })
  }
  return { text: /\p{L}/u.test(text) ? text : request, kinds }
}

/** What an embedding should read instead: the words inside of these would pull it to the wrong tools. */
const NOUNS: Partial<Record<LiteralKind, string>> = { url: 'a web page', email: 'an email address', path: 'a file' }

/** Replaces addresses and paths with what they are. Other values stay, because their meaning helps. */
export function nameLiterals(request: string): string {
  return LITERALS.reduce((text, [kind, pattern]) => {
    const noun = NOUNS[kind]
    return noun === undefined ? text : text.replace(pattern, (found) => (isWord(kind, found) ? found : noun))
  }, request)
}

/** Parameter names that take a value of this kind. Numbers, dates and quoted text fit too many parameters to say anything. */
const TAKES: Partial<Record<LiteralKind, RegExp>> = {
  path: /^(?:.*[_-])?(?:path|paths|file|files|filename|filepath|dir|directory|folder|source|destination|root)s?(?:[_-]?name)?$|(?:Path|File|Dir|Directory|Folder)(?:Name)?$/,
  url: /^(?:.*[_-])?(?:url|urls|uri|link|href|website|domain|site|page)$|(?:Url|URL|Uri|URI|Link)$/,
  email: /^(?:.*[_-])?(?:e?mail|email_?address|recipients?|to|cc|attendees?)$|(?:Email|Recipients?)$/
}

/** The kinds of values that a tool takes; `params` has one parameter per line, its name first. */
export function kindsTaken(params: string): Set<LiteralKind> {
  const names = params.split('\n').map((line) => /^[\w.-]*/.exec(line.trim())?.[0] ?? '')
  const found = Object.entries(TAKES).filter(([, name]) => names.some((each) => name.test(each)))
  return new Set(found.map(([kind]) => kind as LiteralKind))
}
