/**
 * Counts the tools in the routing data sets that are taken for readers (`npm run bench -- readers`). `--list` prints each of them, so that
 * a person can check that none of them writes.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isPlainReader } from '../server/policy/plain-reader.ts'
import { routingDataFolder } from './routing-data.ts'

interface DataTool {
  name: string
  description: string
  params?: string[]
}

const SETS = ['haystack_mcpzero', 'mcpproxy_golden', 'stabletoolbench', 'bfcl_live', 'metatool']

/** Each line is `name: description`. */
function schemaOf(params: string[] = []): Record<string, unknown> {
  const properties = params.map((param) => {
    const at = param.indexOf(': ')
    return at < 0 ? [param, {}] : [param.slice(0, at), { description: param.slice(at + 2) }]
  })
  return { type: 'object', properties: Object.fromEntries(properties) }
}

export async function readerFigures(list: boolean, given = process.env.ROUTING_DATA): Promise<object> {
  const folder = routingDataFolder(given)
  if (folder === undefined) {
    return { skipped: 'The routing data is not on this machine; set ROUTING_DATA to its folder.' }
  }
  const figures: Record<string, object> = {}
  for (const set of SETS) {
    const tools: DataTool[] = JSON.parse(await readFile(join(folder, set, 'tools.json'), 'utf8'))
    const readers = tools.filter(({ name, description, params }) =>
      isPlainReader({ name, description, inputSchema: schemaOf(params) })
    )
    const shown = readers.map(({ name, description }) => `${name} | ${description}`)
    figures[set] = { tools: tools.length, readers: readers.length, ...(list ? { shown } : {}) }
  }
  return figures
}
