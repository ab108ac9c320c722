const EXCLUDES =
  /\b(?:but|not|no|never|except\w*|exclud\w+|other\s+than|apart\s+from|aside\s+from|besides|without|instead\s+of|rather\s+than|\w*n\s?['’]t|dont)\b/gi
const END = /[.;!?](?:\s|$)/
const QUOTED = /"[^"]*"|“[^”]*”|(?<!\w)'[^']*'(?!\w)/g

/**
 * Blanks out what the sentence may exclude: everything from such a word ("any city but …") to the end of its sentence. A value
 * there must not become a parameter, even if it is the only one. Spaces take its place, so that all positions stay.
 */
export function withoutExcluded(request: string): string {
  // Same length, so that positions stay; what a quoted text says is data.
  const masked = request.replace(QUOTED, (text) => 'X'.repeat(text.length))
  let kept = ''
  let at = 0
  for (const { index } of masked.matchAll(EXCLUDES)) {
    if (index < at) continue
    const end = END.exec(masked.slice(index))
    // A token is removed as a whole: "do.not.txt".
    let from = index
    while (from > at && /\S/.test(masked[from - 1] ?? ' ')) from -= 1
    kept += request.slice(at, from)
    at = end ? index + end.index : request.length
    kept += ' '.repeat(at - from)
  }
  return kept + request.slice(at)
}
