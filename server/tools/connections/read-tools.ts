import { hasHidden } from '../../../contract/hidden-characters.ts'
import { type StoredTool, toolHash } from '../../catalog/stored-tools.ts'
import { isRecord } from '../../lib/is-record.ts'

const MAX_NAME = 200
const MAX_DESCRIPTION = 20_000
const MAX_SCHEMA_CHARS = 100_000

/** A server's tools as it lists them: what is no tool is left out, what is too long is cut. */
export function readTools(listed: unknown[]): StoredTool[] {
  const seen = new Set<string>()
  return listed.flatMap((item) => {
    const tool = readTool(item)
    if (tool === undefined || seen.has(tool.name)) return []
    seen.add(tool.name)
    return [tool]
  })
}

function readTool(item: unknown): StoredTool | undefined {
  if (!isRecord(item) || typeof item.name !== 'string' || item.name.length === 0 || item.name.length > MAX_NAME) return
  // Its name would be shown to people and models as something else than it is.
  if (hasHidden(item.name) || /[\n\t]/.test(item.name)) return
  const inputSchema = bounded(item.inputSchema)
  if (inputSchema === undefined) return
  const outputSchema = bounded(item.outputSchema)
  const annotations = bounded(item.annotations)
  const description = typeof item.description === 'string' ? item.description.slice(0, MAX_DESCRIPTION) : ''
  const { title, icons, _meta } = item
  const shown = bounded({ title, icons, _meta })
  const tool = {
    name: item.name,
    description,
    inputSchema,
    ...(outputSchema ? { outputSchema } : {}),
    ...(annotations ? { annotations } : {}),
    ...(shown && JSON.stringify(shown) !== '{}' ? { shown } : {})
  }
  return { ...tool, hash: toolHash(tool) }
}

function bounded(value: unknown): Record<string, unknown> | undefined {
  return isRecord(value) && JSON.stringify(value).length <= MAX_SCHEMA_CHARS ? value : undefined
}
