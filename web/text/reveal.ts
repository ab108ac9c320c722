/**
 * Makes what a reader cannot see visible. Text from models, tools and files may hide or reorder characters so that a person
 * approves something else than what runs.
 */
export interface TextPart {
  text: string
  /** The code point, when the character would not be seen. */
  hidden?: string
}

/** Odd spaces; and marks that change how the character before them looks. */
const SPACES = '\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000'
const VARIANTS = '\\ufe00-\\ufe0f\\u180b-\\u180f'
const FILLERS = '\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u2800\\u3164\\uffa0\\u{e0100}-\\u{e01ef}'
const INVISIBLE = '\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Co}\\p{Cs}'

/** A line break and a tab are what they look like. The same character many times over is one finding. */
const HIDDEN = new RegExp(`((?![\\n\\t])[${INVISIBLE}${SPACES}${VARIANTS}${FILLERS}])\\1*`, 'gu')
/** Each is an element of the page, and a hundred thousand of them would stop it: those that follow are named in the text. */
const MAX_MARKED = 100

/** In prose, what many languages and emoji need stays: joiners, direction marks, spaces, variation selectors. */
const NEEDED_IN_PROSE = new RegExp(`[\\u200c-\\u200f${SPACES}${VARIANTS}]`, 'u')

export function reveal(text: string, where: 'strict' | 'prose' = 'strict'): TextPart[] {
  const parts: TextPart[] = []
  let from = 0
  let marked = 0
  let rest = ''
  for (const { 0: run, 1: character = '', index } of text.matchAll(HIDDEN)) {
    if (where === 'prose' && NEEDED_IN_PROSE.test(character)) continue
    const before = text.slice(from, index)
    const hidden = codePointName(character) + (run === character ? '' : ` ×${run.length / character.length}`)
    from = index + run.length
    if (++marked > MAX_MARKED) rest += `${before}⟨${hidden}⟩`
    else parts.push(...(before === '' ? [] : [{ text: before }]), { text: run, hidden })
  }
  rest += text.slice(from)
  return rest === '' ? parts : [...parts, { text: rest }]
}

export function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

/** For places that take plain text only: titles, labels, file names in a download. */
export function revealPlainly(text: string): string {
  return reveal(text)
    .map((part) => (part.hidden ? `⟨${part.hidden}⟩` : part.text))
    .join('')
}
