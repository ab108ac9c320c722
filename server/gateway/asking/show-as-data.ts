import { replaceHidden } from '../../../contract/hidden-characters.ts'

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
  return replaceHidden(text, (run, character) =>
    `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`.repeat(run.length / character.length)
  )
}
