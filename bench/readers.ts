/**
 * Counts the tools in the routing data sets that are taken for readers (`npm run bench -- readers`). `--list` prints each of them, so that
 * a person can check that none of them writes.
 */
import { isPlainReader } from '../server/policy/plain-reader.ts'
import { read, type StoredTool } from './routing-data.ts'

const SETS = ['haystack_mcpzero', 'mcpproxy_golden', 'stabletoolbench', 'bfcl_live', 'metatool']

/** Each line is `name: description`. */
function schemaOf(params: string[] = []): Record<string, unknown> {
  const properties = params.map((param) => {
    const at = param.indexOf(': ')
    return at < 0 ? [param, {}] : [param.slice(0, at), { description: param.slice(at + 2) }]
  })
  return { type: 'object', properties: Object.fromEntries(properties) }
}

export async function readerFigures(folder: string, list: boolean): Promise<object> {
  const figures: Record<string, object> = {}
  for (const set of SETS) {
    const tools = await read<StoredTool[]>(folder, set, 'tools.json')
    const readers = tools.filter(({ name, description, params }) =>
      isPlainReader({ name, description, inputSchema: schemaOf(params) })
    )
    const shown = readers.map(({ name, description }) => `${name} | ${description}`)
    figures[set] = { tools: tools.length, readers: readers.length, ...(list ? { shown } : {}) }
  }
  return figures
}
