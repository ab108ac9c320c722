import { replaceHidden } from '../../../contract/hidden-characters.ts'

/**
 * Formats a hostile value as readable JSON that can't imitate the text around it: line breaks stay escaped, and invisible or
 * reordering characters become escapes.
 */
export function showAsData(value: unknown): string {
  return escapeUnseen(JSON.stringify(value, null, 2) ?? 'undefined')
}

/** A name on one line and in quotes. */
export function showName(name: string): string {
  return escapeUnseen(JSON.stringify(name.slice(0, 200)))
}

/** A hostile text on one line; unchanged if nothing in it could deceive. */
export function showLine(text: string): string {
  return escapeUnseen(text.replaceAll('\n', '\\n'))
}

function escapeUnseen(text: string): string {
  return replaceHidden(text, (run) => {
    if (/^ +$/.test(run)) return `\\u{20 ×${run.length}}`
    return Array.from(run, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`).join('')
  })
}
