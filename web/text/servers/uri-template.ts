/** Addresses with variables, as MCP servers offer them (RFC 6570). The pattern is hostile. */
export interface TemplateVariable {
  name: string
  /** Without it, the address would have a gap. */
  isRequired: boolean
}

type Part = string | { operator: string; names: string[] }

const MAX_VARIABLES = 30
/** Each operator puts a sign first, and one between values. */
const OPERATORS: Record<string, { first: string; between: string; isNamed?: true; isOpen?: true }> = {
  '': { first: '', between: ',' },
  '+': { first: '', between: ',', isOpen: true },
  '#': { first: '#', between: ',', isOpen: true },
  '.': { first: '.', between: '.' },
  '/': { first: '/', between: '/' },
  ';': { first: ';', between: ';', isNamed: true },
  '?': { first: '?', between: '&', isNamed: true },
  '&': { first: '&', between: '&', isNamed: true }
}
const EXPRESSION = /\{([+#./;?&]?)([\w.%]+(?::\d{1,4}|\*)?(?:,[\w.%]+(?::\d{1,4}|\*)?)*)\}/g

/** Null if it is no pattern that we know: then the person writes the address. */
export function templateVariables(template: string): TemplateVariable[] | null {
  const parts = partsOf(template)
  if (!parts) return null
  const found = new Map<string, boolean>()
  for (const part of parts) {
    if (typeof part === 'string') continue
    for (const name of part.names) {
      const isRequired = part.operator === '' || part.operator === '+'
      found.set(bare(name), found.get(bare(name)) === true || isRequired)
    }
  }
  if (found.size === 0 || found.size > MAX_VARIABLES) return null
  return [...found].map(([name, isRequired]) => ({ name, isRequired }))
}

/** The address with the values in it. Variables without a value are left out. */
export function filledTemplate(template: string, values: Record<string, string>): string {
  return (partsOf(template) ?? [template])
    .map((part) => (typeof part === 'string' ? part : filledPart(part.operator, part.names, values)))
    .join('')
}

function filledPart(operator: string, names: readonly string[], values: Record<string, string>): string {
  const rule = OPERATORS[operator] ?? { first: '', between: ',' }
  const filled = names.flatMap((name) => {
    const given = Object.hasOwn(values, bare(name)) ? (values[bare(name)] ?? '') : ''
    if (given === '') return []
    const value = encoded(cut(given, name), rule.isOpen === true, name.endsWith('*') ? rule.between : '')
    return [rule.isNamed ? `${bare(name)}=${value}` : value]
  })
  return filled.length === 0 ? '' : rule.first + filled.join(rule.between)
}

/** In a list (`*`), what the person typed between the values stays: `notes/a.md` for `{/path*}`. */
function encoded(text: string, isOpen: boolean, between: string): string {
  if (between !== '' && between !== '&') return text.split(between).map(encodeURIComponent).join(between)
  if (!isOpen) return encodeURIComponent(text)
  return encodeURI(text).replace(/%25([0-9a-f]{2})/gi, '%$1')
}

const bare = (name: string) => name.replace(/[:*].*$/, '')

function cut(text: string, name: string): string {
  const length = /:(\d+)$/.exec(name)?.[1]
  return (length === undefined ? text : [...text].slice(0, Number(length)).join('')).toWellFormed()
}

function partsOf(template: string): Part[] | null {
  const parts: Part[] = []
  let at = 0
  for (const { index, 0: all, 1: operator = '', 2: names = '' } of template.matchAll(EXPRESSION)) {
    parts.push(template.slice(at, index), { operator, names: names.split(',') })
    at = index + all.length
  }
  parts.push(template.slice(at))
  return parts.some((part) => typeof part === 'string' && /[{}]/.test(part)) ? null : parts
}
