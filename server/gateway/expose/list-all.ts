import type { ServerCapabilities, ServerContext } from '@modelcontextprotocol/server'
import type { RawResult } from '../../connections/wire/call-input.ts'
import { messageOf } from '../../lib/errors.ts'
import { isDenied } from '../execute/run-request.ts'
import type { Exposed } from './exposed.ts'
import type { ExposedFace } from './exposed-face.ts'
import { passOn } from './pass-on.ts'

type Item = Record<string, unknown>

const KINDS = {
  prompts: {
    method: 'prompts/list',
    has: ({ prompts }: ServerCapabilities) => prompts,
    show: (exposed: Exposed, server: string, item: Item) => ({
      ...item,
      name: exposed.names.of(server, String(item.name))
    })
  },
  resources: {
    method: 'resources/list',
    has: ({ resources }: ServerCapabilities) => resources,
    show: (exposed: Exposed, server: string, item: Item) => ({
      ...item,
      uri: exposed.resources.of(server, String(item.uri))
    })
  },
  resourceTemplates: {
    method: 'resources/templates/list',
    has: ({ resources }: ServerCapabilities) => resources,
    show: (exposed: Exposed, server: string, item: Item) => {
      exposed.resources.learnTemplate(server, String(item.uriTemplate))
      return item
    }
  }
}

export type ListKind = keyof typeof KINDS

const MAX_PAGES = 20
const MAX_ITEMS = 5000

/** Passes through a single server's pages; of several servers, joins all pages of those that answer. */
export async function listAll(
  face: ExposedFace,
  context: ServerContext,
  kind: ListKind,
  params: Record<string, unknown>
): Promise<RawResult> {
  const { exposed } = face
  const { method, has, show } = KINDS[kind]
  const isOpen = (server: string) => !isDenied(exposed.core, server, method)
  if (exposed.only !== undefined)
    return isOpen(exposed.only) ? passOn(face, exposed.only, context, method, params) : { [kind]: [] }
  const open = exposed.serversWith(has).filter(isOpen)
  const lists = open.map(async (server) => {
    try {
      return (await pages(face, server, context, kind)).map((item) => show(exposed, server, item))
    } catch (error) {
      // One failing server must not hide the others.
      exposed.logger.debug({ server }, `${method}: ${messageOf(error)}`)
      return []
    }
  })
  return { [kind]: (await Promise.all(lists)).flat() }
}

async function pages(face: ExposedFace, server: string, context: ServerContext, kind: ListKind): Promise<Item[]> {
  const items: Item[] = []
  let cursor: unknown
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = typeof cursor === 'string' ? { cursor } : {}
    const result = await passOn(face, server, context, KINDS[kind].method, params)
    const found = result[kind]
    if (Array.isArray(found)) items.push(...found)
    cursor = result.nextCursor
    if (typeof cursor !== 'string' || items.length >= MAX_ITEMS) break
  }
  return items.slice(0, MAX_ITEMS)
}
