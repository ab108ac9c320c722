const MAX_PARAMETERS = 100
const MAX_CHARS = 4000

/** How much of a result is wanted says nothing about what a tool does: "search the page" means no `page` of results. */
export function isPaging(name: string): boolean {
  return /^(?:page|per_?page|page_?(?:size|number)|limit|offset|cursor)$/i.test(name)
}

/** Names and descriptions of a tool's parameters, as text for searching. */
export function parameterText(inputSchema: Record<string, unknown>): string {
  const { properties } = inputSchema
  if (typeof properties !== 'object' || properties === null) return ''
  return Object.entries(properties)
    .filter(([name]) => !isPaging(name))
    .slice(0, MAX_PARAMETERS)
    .map(([name, schema]: [string, unknown]) => {
      const known = typeof schema === 'object' && schema !== null && 'description' in schema ? schema.description : ''
      return typeof known === 'string' ? `${name} ${known}` : name
    })
    .join('\n')
    .slice(0, MAX_CHARS)
}
