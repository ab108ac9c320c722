import { propertiesOf, requiredOf, typesOf } from './check-params.ts'
import { withoutExcluded } from './excluded-values.ts'

type Schema = Record<string, unknown>
type Params = Record<string, unknown>

/**
 * Fills a tool's missing parameters from the sentence where that is safe: a value next to the parameter's name; and for tools
 * that only read, the one value of its kind for the one required parameter of that kind. A value that the sentence leaves out is
 * never one.
 */
export function fillParams(schema: Schema, given: Params, sentence: string, readOnly: boolean): Params {
  const request = withoutExcluded(sentence)
  const filled = { ...named(schema, given, request), ...given }
  if (!readOnly) return requiredOf(schema).every((name) => filled[name] !== undefined) ? filled : given
  const open = requiredOf(schema).filter((name) => filled[name] === undefined)
  const used = new Set(Object.values(filled).map(String))
  const found = findValues(request, used)
  for (const kind of ['url', 'email', 'path', 'quoted', 'number'] as const) {
    const values = found[kind]
    const takers = open.filter(
      (name) => filled[name] === undefined && takes(propertiesOf(schema)[name] ?? {}, name, kind)
    )
    const [value] = values
    const [taker] = takers
    if (values.length === 1 && takers.length === 1 && value !== undefined && taker !== undefined) filled[taker] = value
  }
  return filled
}

/** `name=value`, `name: value`, `name "value"`, with the parameter's own name. */
function named(schema: Schema, given: Params, request: string): Params {
  const found: Params = {}
  for (const [name, property] of Object.entries(propertiesOf(schema))) {
    if (given[name] !== undefined) continue
    const word = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    const match = new RegExp(
      `(?<![\\w-])${word}(?:\\s*[=:]\\s*|\\s+(?=["'“]))(?:"([^"]*)"|'([^']*)'|“([^”]*)”|([^\\s,;]+))`,
      'i'
    ).exec(request)
    if (!match) continue
    const value = convert(property, match[1] ?? match[2] ?? match[3] ?? match[4]?.replace(/[.!?]$/, '') ?? '')
    if (value !== undefined) found[name] = value
  }
  return found
}

function convert(property: Schema, text: string): unknown {
  const types = typesOf(property)
  if (Array.isArray(property.enum)) return property.enum.find((choice) => String(choice) === text)
  if (types.includes('string') || types.length === 0) return text
  if (types.includes('number') || types.includes('integer')) {
    const number = Number(text)
    const fits = text.trim() !== '' && Number.isFinite(number) && (types.includes('number') || Number.isInteger(number))
    return fits ? number : undefined
  }
  if (types.includes('boolean')) return text === 'true' ? true : text === 'false' ? false : undefined
  return undefined
}

type Kind = 'url' | 'email' | 'path' | 'quoted' | 'number'

export function findValues(request: string, used: Set<string>): Record<Kind | 'id', (string | number)[]> {
  let rest = request
  const take = (pattern: RegExp): string[] => {
    const values = [...rest.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? match[0])
    rest = rest.replace(pattern, ' ')
    return [...new Set(values)].filter((value) => !used.has(value))
  }
  return {
    quoted: take(/"([^"]+)"|(?<!\w)'([^']+)'(?!\w)|“([^”]+)”/g),
    url: take(/\bhttps?:\/\/[^\s"'<>]+[^\s"'<>.,;!?)]/g),
    email: take(/\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b/g),
    path: take(
      /(?<![\p{L}\p{N}_/])(?:~|\.{1,2})?\/[\p{L}\p{M}\p{N}_.@+-]+(?:\/[\p{L}\p{M}\p{N}_.@+-]+)*\/?(?<![.,])/gu
    ),
    number: take(/(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-]|\.\d)/g).map(Number),
    // Letters with digits, such as "nginx-123", or a date.
    id: take(/(?<![\w-])(?=[\w-]*\d)[\w-]*[A-Za-z-][\w-]*/g)
  }
}

/** Quoted text fits any free text; the other kinds only if format or name says so. */
function takes(property: Schema, name: string, kind: Kind): boolean {
  const types = typesOf(property)
  if (kind === 'number') return types.includes('number') || types.includes('integer')
  if (!types.includes('string') || Array.isArray(property.enum)) return false
  const { format } = property
  if (kind === 'quoted') return format === undefined
  if (kind === 'url') return format === 'uri' || /ur[il]$/i.test(name)
  if (kind === 'email') return format === 'email' || /e?mail/i.test(name)
  return /(path|file|dir|folder|directory)(name)?$/i.test(name)
}
