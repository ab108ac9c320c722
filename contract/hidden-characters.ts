/**
 * Makes visible what a reader cannot see. Text from models, tools, files and clients can hide or reorder characters so that a
 * person approves something other than what runs. This is the only list of such characters: the page, the gateway's dialogs, the
 * terminal and the audit log all use it.
 *
 * `strict` is for commands, paths, names and arguments: every hidden character is shown, and so is a long run of spaces, which looks
 * like the end of a line. `columns` keeps such runs: it is for output, files and tables. `prose` is for sentences: valid emoji
 * sequences, joiners inside scripts that need them, and unusual spaces stay as they are.
 */
export type TextKind = 'strict' | 'columns' | 'prose'

export interface TextPart {
  text: string
  /** The name of the code point, if the character would not be seen. */
  hidden?: string
}

/** Characters that have no glyph although no Unicode property says so: blanks and fillers. */
const BLANK = '\\u2800\\ufffc\\u{13441}\\u{13442}\\u{16fe4}\\u{1d159}'
const INVISIBLE = `\\p{Default_Ignorable_Code_Point}\\p{Bidi_Control}\\p{Cc}\\p{Cf}\\p{Co}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Noncharacter_Code_Point}${BLANK}`

/** A line break, a tab and a plain space are what they look like. Unassigned code points have no agreed appearance. */
const STRICT = `(?![\\n\\t ])[${INVISIBLE}\\p{Zs}\\p{Cn}]`
/** Signs that are drawn around digits are format characters, but visible. */
const DRAWN_FORMAT = '\\u0600-\\u0605\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u{110bd}\\u{110cd}'
/** Not indentation, which is seen because a line begins before it. */
const LONG_BLANK = '(?<![\\n\\t ])(?:[ \\t]{32,}|(?: *\\t){8,} *)'
const PROSE = `(?![\\n\\t${DRAWN_FORMAT}])[${INVISIBLE}]`

const PICTURE = '\\p{Extended_Pictographic}(?:\\ufe0f?\\p{Emoji_Modifier}|[\\ufe0e\\ufe0f])?'
/** A longer chain of joined pictures is not an emoji. The longest that is in use has four. */
const JOINED_PICTURES = `${PICTURE}(?:\\u200d${PICTURE}){0,5}`
const KEYCAP = '[#*0-9]\\ufe0f\\u20e3'
/** Only the three flags in general use: any other run of tags could spell out a sentence. */
const TAG_FLAGS = ['gbeng', 'gbsct', 'gbwls']
  .map(
    (code) =>
      `\\u{1f3f4}${[...code].map((letter) => `\\u{e00${letter.charCodeAt(0).toString(16)}}`).join('')}\\u{e007f}`
  )
  .join('|')

const JOINING_SCRIPTS = (
  'Arab Syrc Mong Nkoo Mand Phag Mani Phlp Adlm Rohg Sogd ' +
  'Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh Khmr Mymr Tibt Java Bali Sund Kthi Newa Tirh Sidd Gran Modi Takr Shrd Mtei Cakm'
).split(' ')
const letterOf = (scripts: readonly string[]) =>
  `(?=[\\p{L}\\p{M}])(?!\\p{Default_Ignorable_Code_Point})[${scripts.map((script) => `\\p{scx=${script}}`).join('')}]`
const JOINER = `(?<=${letterOf(JOINING_SCRIPTS)})[\\u200c\\u200d](?=${letterOf(JOINING_SCRIPTS)})`
const MONGOLIAN = `(?<=${letterOf(['Mong'])})(?:[\\u180b-\\u180d\\u180f]|\\u180e(?=${letterOf(['Mong'])}))`
/** These scripts write no spaces between words and mark where a line may break. */
const UNSPACED_SCRIPTS = ['Khmr', 'Laoo', 'Mymr', 'Thai']
const WORD_BREAK = `(?<=${letterOf(UNSPACED_SCRIPTS)})\\u200b(?=${letterOf(UNSPACED_SCRIPTS)})`

/** The same character many times over is one finding. Group 1 is that character, or a long blank; a match without it is plain text. */
const FINDINGS: Record<TextKind, RegExp> = {
  strict: new RegExp(`(${STRICT}|${LONG_BLANK})\\1*`, 'gu'),
  columns: new RegExp(`(${STRICT})\\1*`, 'gu'),
  prose: new RegExp(
    [KEYCAP, TAG_FLAGS, JOINED_PICTURES, JOINER, MONGOLIAN, WORD_BREAK, `(${PROSE})\\1*`].join('|'),
    'gu'
  )
}

/** The page makes an element of each mark, and a hundred thousand would stop it. Later ones are named in the text. */
const MAX_MARKED = 100

export function reveal(text: string, kind: TextKind = 'strict'): TextPart[] {
  const parts: TextPart[] = []
  let from = 0
  let marked = 0
  let rest = ''
  for (const { 0: run, 1: character, index } of text.matchAll(FINDINGS[kind])) {
    if (character === undefined) continue
    const before = text.slice(from, index)
    const hidden = nameOf(run, character)
    from = index + run.length
    if (++marked > MAX_MARKED) rest += `${before}⟨${hidden}⟩`
    else parts.push(...(before === '' ? [] : [{ text: before }]), { text: run, hidden })
  }
  rest += text.slice(from)
  return rest === '' ? parts : [...parts, { text: rest }]
}

/** For places that take plain text only: titles, labels, a terminal. */
export function revealPlainly(text: string, kind: TextKind = 'strict'): string {
  return replaceHidden(text, (run, character) => `⟨${nameOf(run, character)}⟩`, kind)
}

export function hasHidden(text: string, kind: TextKind = 'strict'): boolean {
  return reveal(text, kind).some(({ hidden }) => hidden !== undefined)
}

/** `replace` gets a run of one hidden character repeated, and that character; for a long blank, it gets the blank twice. */
export function replaceHidden(
  text: string,
  replace: (run: string, character: string) => string,
  kind: TextKind = 'strict'
): string {
  return text.replace(FINDINGS[kind], (run: string, character: string | undefined) =>
    character === undefined ? run : replace(run, character)
  )
}

/** JSON that means the same and holds hidden characters as escapes only. Takes JSON without line breaks between its parts. */
export function escapeJson(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return replaceHidden(json, (run) => run.replace(/[\s\S]/g, escaped), 'columns')
}

/**
 * Sequences that steer a terminal: colours and movements (CSI), and others of two or three characters. Titles and links (OSC, DCS and
 * the like) are shown, because they can contain any text, also a command that runs.
 */
const CSI = String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]`
const SHORT = '\\x1b[ -/][0-~]|\\x1b[0-OQ-WYZ\\\\`-~]'
const TERMINAL_CONTROL = new RegExp(`${CSI}|${SHORT}`, 'g')

/** Text for a terminal: control sequences are removed, other hidden characters are shown, lines and columns stay as they are. */
export function terminalText(text: string, kind: TextKind = 'columns'): string {
  return revealPlainly(text.replace(/\r\n/g, '\n').replace(TERMINAL_CONTROL, ''), kind)
}

/** The same in one line, for a value of which we did not choose the spaces. */
export function terminalLine(text: string): string {
  return terminalText(text.trim(), 'strict').replace(/\n/g, '⟨U+000A⟩')
}

/** Another program's output on one line, so that it can be part of one of our sentences. */
export function quotedLine(text: string): string {
  return terminalText(text.trim()).replace(/(?<!\s)\s*\n\s*/g, ' / ')
}

function nameOf(run: string, character: string): string {
  if (/^[ \t]/.test(run)) return `${run.length} ${run.includes('\t') ? 'spaces and tabs' : 'spaces'}`
  const name = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
  return run === character ? name : `${name} ×${run.length / character.length}`
}
