import { hasHidden, terminalLine } from '../../../contract/hidden-characters.ts'
import { type StoredTool, toolHash } from '../../catalog/stored-tools.ts'
import { isRecord } from '../../lib/is-record.ts'

const MAX_NAME = 200
const MAX_DESCRIPTION = 20_000
const MAX_SCHEMA_CHARS = 100_000

/** The tools that were left out of a list, each with a reason that is safe to show. */
const leftOut = new WeakMap<StoredTool[], string[]>()
const MAX_LEFT_OUT = 20
const MAX_SHOWN_NAME = 80

/** Reads a server's tool list: leaves out invalid tools (`leftOutOf` lists them) and cuts long descriptions. */
export function readTools(listed: unknown[]): StoredTool[] {
  const names = new Set<string>()
  const reasons: string[] = []
  const tools = listed.flatMap((item) => {
    const tool = readTool(item)
    const reason = typeof tool === 'string' ? tool : names.has(tool.name) ? 'another one has the same name' : undefined
    if (typeof tool === 'string' || reason !== undefined) {
      if (reasons.length < MAX_LEFT_OUT) reasons.push(`${shownName(item)}: ${reason}`)
      return []
    }
    names.add(tool.name)
    return [tool]
  })
  leftOut.set(tools, reasons)
  return tools
}

/** For a list that `readTools` returned; at most 20. */
export function leftOutOf(tools: StoredTool[]): string[] {
  return leftOut.get(tools) ?? []
}

function shownName(item: unknown): string {
  const name = isRecord(item) && typeof item.name === 'string' ? item.name : ''
  return name === '' ? 'a tool without a name' : `"${terminalLine(name.slice(0, MAX_SHOWN_NAME))}"`
}

/** Returns the tool, or the reason why it is left out. */
function readTool(item: unknown): StoredTool | string {
  if (!isRecord(item) || typeof item.name !== 'string' || item.name.length === 0) return 'it needs a name'
  if (item.name.length > MAX_NAME) return `its name is longer than ${MAX_NAME} characters`
  // The name would look different from what it is to people and models.
  if (hasHidden(item.name) || /[\n\t]/.test(item.name)) return 'its name has hidden characters'
  const inputSchema = bounded(item.inputSchema)
  if (inputSchema === undefined) return `its inputSchema is missing, or longer than ${MAX_SCHEMA_CHARS} characters`
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
