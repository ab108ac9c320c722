/** Where a text is not valid JSON, for people. Browsers word this differently, and often leave out the place. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{}[\]:,]/sy
const SPACE = /[ \t\n\r]*/y

/** "line 3, column 5: a comma or } is missing here". Null if it is valid. */
export function jsonFault(text: string): string | null {
  try {
    JSON.parse(text)
    return null
  } catch {
    const { at, why } = firstFault(text)
    const lines = text.slice(0, at).split('\n')
    return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}: ${why}`
  }
}

type Wanted = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or ]' | ', or }' | 'end'
const WORDS: Record<Wanted, string> = {
  value: 'a value is missing here',
  'value or ]': 'a value or ] is missing here',
  name: 'a name in double quotes is missing here',
  'name or }': 'a name in double quotes, or }, is missing here',
  ':': 'a colon is missing here',
  ', or ]': 'a comma or ] is missing here',
  ', or }': 'a comma or } is missing here',
  end: 'nothing may follow here'
}

function firstFault(text: string): { at: number; why: string } {
  const open: ('{' | '[')[] = []
  let wanted: Wanted = 'value'
  const closed = (): Wanted => (open.length === 0 ? 'end' : open.at(-1) === '[' ? ', or ]' : ', or }')
  for (let at = 0; ; ) {
    SPACE.lastIndex = at
    SPACE.exec(text)
    at = SPACE.lastIndex
    TOKEN.lastIndex = at
    const token = TOKEN.exec(text)?.[0] ?? ''
    if (text[at] === '"' && !isText(token))
      return { at, why: 'this text does not end, or has a character that must be escaped' }
    const next = after(token, wanted, open, closed)
    if (next === null)
      return { at, why: at >= text.length ? `the text ends too early; ${WORDS[wanted]}` : WORDS[wanted] }
    wanted = next
    at += token.length
  }
}

function isText(token: string): boolean {
  try {
    return typeof JSON.parse(token) === 'string'
  } catch {
    return false
  }
}

function after(token: string, wanted: Wanted, open: ('{' | '[')[], closed: () => Wanted): Wanted | null {
  const closes = (token === ']' && wanted.endsWith(']')) || (token === '}' && wanted.endsWith('}'))
  if (closes) {
    open.pop()
    return closed()
  }
  if (wanted === ':') return token === ':' ? 'value' : null
  if (wanted === ', or ]') return token === ',' ? 'value' : null
  if (wanted === ', or }') return token === ',' ? 'name' : null
  if (wanted.startsWith('name')) return token.startsWith('"') ? ':' : null
  if (wanted === 'end' || token === '' || ']}:,'.includes(token)) return null
  if (token !== '{' && token !== '[') return closed()
  open.push(token)
  return token === '{' ? 'name or }' : 'value or ]'
}
