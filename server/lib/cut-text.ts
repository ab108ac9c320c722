/** The beginning of a text, without half of a character at its end. */
export function headOf(text: string, maxChars: number): string {
  return text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '')
}

/** The end of a text, without half of a character at its beginning. */
export function tailOf(text: string, maxChars: number): string {
  return text.slice(-maxChars).replace(/^[\udc00-\udfff]/, '')
}
