const MAX_PARAMETERS = 100
const MAX_CHARS = 4000

/** Names and descriptions of a tool's parameters, as text for searching. */
export function parameterText(inputSchema: Record<string, unknown>): string {
  const { properties } = inputSchema
  if (typeof properties !== 'object' || properties === null) return ''
  return Object.entries(properties)
    .slice(0, MAX_PARAMETERS)
    .map(([name, schema]: [string, unknown]) => {
      const known = typeof schema === 'object' && schema !== null && 'description' in schema ? schema.description : ''
      return typeof known === 'string' ? `${name} ${known}` : name
    })
    .join('\n')
    .slice(0, MAX_CHARS)
}
