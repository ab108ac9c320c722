import { revealPlainly, type TextKind } from '../../../contract/hidden-characters.ts'

const SIGNS: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** A hostile text for a page: without markup, and with hidden characters by name. */
export function escapedHtml(text: string, kind: TextKind): string {
  return revealPlainly(text.toWellFormed(), kind).replace(/[&<>"']/g, (sign) => SIGNS[sign] ?? '')
}
