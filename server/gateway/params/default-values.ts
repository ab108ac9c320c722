import { checkParams, propertiesOf, requiredOf } from './check-params.ts'

/** The tool's own values for required parameters that are missing: many schemas require what has a default. */
export function missingDefaults(
  schema: Record<string, unknown>,
  params: Record<string, unknown>
): Record<string, unknown> {
  const properties = propertiesOf(schema)
  const missing = requiredOf(schema).filter((name) => params[name] === undefined && Object.hasOwn(properties, name))
  return Object.fromEntries(
    missing.flatMap((name) => {
      const property = properties[name] ?? {}
      const { default: value } = property
      return value !== undefined && checkParams(property, value).length === 0 ? [[name, value]] : []
    })
  )
}
