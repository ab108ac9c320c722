/**
 * Converts JavaScript to ASCII, because V8 uses two bytes per character for a source with any other character. Such characters occur in
 * strings, templates, regular expressions and comments, where an escape means the same.
 */
export function asciiSource(code: string): string {
  // String.raw returns these as written in the source, so an escape would change the text.
  const raw = /\bString\.raw\s*`[^`]*[^\p{ASCII}][^`]*`/u.exec(code)
  if (raw) throw new Error(`String.raw with other characters than ASCII can't be escaped: ${raw[0].slice(0, 100)}`)
  // Removes a backslash that is not needed: it would escape the escape.
  return code.replaceAll(/(\\*)([^\p{ASCII}])/gu, (_all, slashes: string, character: string) => {
    const before = slashes.length % 2 === 0 ? slashes : slashes.slice(1)
    return before + escaped(character)
  })
}

function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}
