/** Signs that combine with the letter before them. A normal form sorts a run of them, in a time that grows with its square. */
const SIGNS_AT_ONCE = /[\p{M}\uff9e\uff9f]{30}/gu
/** Ends a run and is not seen ("combining grapheme joiner"). */
const JOINER = '\u034f'

/** The normal form of a text of any kind. No word has runs as long as those that are broken up (see "Stream-Safe Text" in UAX 15). */
export function normalForm(text: string, form: 'NFKC' | 'NFKD'): string {
  return text.replace(SIGNS_AT_ONCE, `$&${JOINER}`).normalize(form)
}
