/**
 * How much of one message is laid out as Markdown. A hostile message of a few hundred kilobytes would otherwise stop the page for many
 * seconds. Real answers stay far below.
 */

/** Parsing costs time for each character. */
const MAX_CHARS = 200_000
const MAX_ELEMENTS = 20_000
/** Characters of all formulas. Each becomes several elements. */
const MAX_TEX_CHARS = 30_000
/** Lists and quotes in each other. The parser leaves out what is deeper than 100. */
const MAX_DEPTH = 40
const MAX_TEX_DEPTH = 20

export interface Cost {
  elements: number
  texChars: number
  depth: number
}

/** Where parsing ends: at the last blank line of what is not too long. */
export function parsedLength(source: string): number {
  if (source.length <= MAX_CHARS) return source.length
  const blank = source.lastIndexOf('\n\n', MAX_CHARS)
  return blank > 0 ? blank + 2 : 0
}

export function htmlCost(html: string, depth: number): Cost {
  const tex = html.matchAll(/ data-tex="([^"]*)"/g)
  const texChars = [...tex].reduce((sum, [, text = '']) => sum + text.length, 0)
  return { elements: html.match(/<[a-z]/g)?.length ?? 0, texChars, depth }
}

/** A block of code has buttons, and its colours are elements. A diagram is drawn in a frame. */
export function codeCost(code: string, language: string): Cost {
  const elements = language === 'mermaid' ? 200 : 20 + Math.ceil(code.length / 10)
  return { elements, texChars: 0, depth: 0 }
}

/** The first block that is too much, counted from the beginning of the message; the number of blocks if none is. */
export function firstBeyond(costs: readonly Cost[]): number {
  let [elements, texChars] = [0, 0]
  const found = costs.findIndex((cost) => {
    elements += cost.elements
    texChars += cost.texChars
    return elements > MAX_ELEMENTS || texChars > MAX_TEX_CHARS || cost.depth > MAX_DEPTH
  })
  return found < 0 ? costs.length : found
}

/** Whether groups are so deep in each other that laying the formula out would take seconds. */
export function isDeepTex(tex: string): boolean {
  let depth = 0
  for (const [mark] of tex.matchAll(/\\(?:left|right|begin|end)(?![a-zA-Z])|\\.|[{}]/g)) {
    if (mark === '{' || mark === '\\left' || mark === '\\begin') depth += 1
    else if (mark === '}' || mark === '\\right' || mark === '\\end') depth -= 1
    if (depth > MAX_TEX_DEPTH) return true
  }
  return false
}
