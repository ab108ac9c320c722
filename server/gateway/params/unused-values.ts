/** Finds values in the sentence that no parameter got: running without them would do something else. */
import type { StoredTool } from '../../catalog/stored-tools.ts'
import { findValues } from './fill-params.ts'
import { isSaid } from './resolve-params.ts'

const MAX_NAMED = 5
const MAX_CHARS = 60
const MAX_DEPTH = 12

interface Filled {
  request: string
  server: string
  tool: Pick<StoredTool, 'name' | 'description'>
  params: Record<string, unknown>
}

/** Returns a sentence; undefined if every value is used. */
export function unusedValues({ request, server, tool, params }: Filled): string | undefined {
  const leaves = leavesOf(params)
  const own = `${server} ${tool.name} ${tool.description}`.toLowerCase()
  const { id, ...values } = findValues(request, new Set())
  // "The s3 buckets" names the tool, not a value.
  const ids = id.filter((value) => !own.includes(String(value).toLowerCase()))
  const unused = [...Object.values(values).flat(), ...ids].filter(
    (value) => !leaves.some((leaf) => isSaid(value, leaf))
  )
  if (unused.length === 0) return undefined
  const named = unused.slice(0, MAX_NAMED).map((value) => JSON.stringify(value).slice(0, MAX_CHARS))
  const more = unused.length > MAX_NAMED ? ` and ${unused.length - MAX_NAMED} more` : ''
  return `These values of the request are in none of "params": ${named.join(', ')}${more}.`
}

function leavesOf(value: unknown, depth = 0): string[] {
  if (typeof value !== 'object' || value === null) return value === undefined ? [] : [String(value)]
  return depth > MAX_DEPTH ? [] : Object.values(value).flatMap((item) => leavesOf(item, depth + 1))
}
