const SPACES = '\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\u2800\\u3164\\uffa0\\u115f\\u1160\\u034f'
const UNSEEN = new RegExp(`(?!\\n)[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Co}\\p{Cs}${SPACES}]`, 'gu')

/**
 * A value of hostile origin as JSON that a person can read and nothing in it can imitate the text around it: line breaks within
 * texts stay escaped, and characters that would not be seen or that reorder others become escapes.
 */
export function showAsData(value: unknown): string {
  return escapeUnseen(JSON.stringify(value, null, 2) ?? 'undefined')
}

/** A name in one line and in quotes. */
export function showName(name: string): string {
  return escapeUnseen(JSON.stringify(name.slice(0, 200)))
}

/** A text of hostile origin in one line, as it is where nothing in it would deceive. */
export function showLine(text: string): string {
  return escapeUnseen(text.replaceAll('\n', '\\n'))
}

function escapeUnseen(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}
