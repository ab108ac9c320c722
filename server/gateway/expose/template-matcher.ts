const MAX_CHARS = 256
const MAX_EXPRESSIONS = 8
const MAX_URI_CHARS = 2000

/** A literal, or the characters that a value in its place can't contain. */
type Part = string | { stops: string }

/**
 * Matches the URIs of a server's template; undefined for an unsupported one. Written by hand: servers choose the templates, and a
 * regular expression made from one can be very slow on a URI that does not match.
 */
export function templateMatcher(template: string): ((uri: string) => boolean) | undefined {
  const parts = readTemplate(template)
  if (parts === undefined) return undefined
  return (uri) => {
    if (uri.length > MAX_URI_CHARS) return false
    let reached = [0]
    for (const part of parts) {
      if (typeof part !== 'string') reached = valueEnds(uri, reached, part.stops)
      else reached = reached.filter((at) => uri.startsWith(part, at)).map((at) => at + part.length)
    }
    return reached.at(-1) === uri.length
  }
}

/** All positions where a value that begins at one of `starts` can end. Both lists are sorted, so that no character is read twice. */
function valueEnds(uri: string, starts: number[], stops: string): number[] {
  const ends: number[] = []
  for (const start of starts) {
    let at = Math.max(start, ends.at(-1) ?? 0)
    while (at < uri.length && !stops.includes(uri.charAt(at))) ends.push(++at)
  }
  return ends
}

function readTemplate(template: string): Part[] | undefined {
  if (template.length > MAX_CHARS) return undefined
  const [head = '', ...rest] = template.split('{')
  if (rest.length > MAX_EXPRESSIONS) return undefined
  const parts: Part[] = [head]
  for (const piece of rest) {
    const end = piece.indexOf('}')
    const expression = readExpression(piece.slice(0, Math.max(end, 0)))
    if (expression === undefined) return undefined
    parts.push(...expression, piece.slice(end + 1))
  }
  return parts
}

/** As the SDK reads them: every value has at least one character. */
function readExpression(expression: string): Part[] | undefined {
  const operator = /^[+#./?&]/.exec(expression)?.[0] ?? ''
  const names = expression.slice(operator.length).replaceAll('*', '').split(',')
  if (names.some((name) => name.trim() === '')) return undefined
  if (operator === '?' || operator === '&') {
    return names.flatMap((name, at) => [`${at === 0 ? operator : '&'}${name.trim()}=`, { stops: '&' }])
  }
  if (operator === '+' || operator === '#') return [{ stops: '' }]
  return [operator, { stops: expression.includes('*') ? '/' : '/,' }]
}
