import type { ServerCapabilities, ServerContext } from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import type { RawResult } from '../../connections/wire/call-input.ts'
import { messageOf } from '../../lib/errors.ts'
import { isDenied } from '../execute/run-request.ts'
import type { Exposed } from './exposed.ts'
import type { ExposedFace } from './exposed-face.ts'
import type { Target } from './exposed-names.ts'
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
/** A server that does not answer must not hold up the others' resources. */
const FIND_MS = 15_000
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
      const ask: Ask = (page) => passOn(face, server, context, method, page)
      return (await pages(ask, kind)).map((item) => show(exposed, server, item))
    } catch (error) {
      // One failing server must not hide the others.
      exposed.logger.debug({ server }, `${method}: ${messageOf(error)}`)
      return []
    }
  })
  return { [kind]: (await Promise.all(lists)).flat() }
}

/**
 * The server that lists this URI, or a template that it fits. Asks the servers for their lists if it is not known. The URI itself may
 * be confidential, so it is sent to no server that does not list it.
 */
export async function findResource(
  exposed: Exposed,
  uri: string,
  caller: Caller,
  signal: AbortSignal
): Promise<Target | undefined> {
  const known = exposed.resourceTarget(uri)
  if (known !== undefined) return known
  const { core, logger } = exposed
  const may = exposed.serversWith(({ resources }) => resources)
  const open = may.filter((server) => !isDenied(core, server, 'resources/list'))
  // The rule refuses it before anything is sent.
  if (open.length === 0) return may[0] === undefined ? undefined : { server: may[0], name: uri }
  const patience = AbortSignal.any([signal, AbortSignal.timeout(FIND_MS)])
  const learn = async (server: string, kind: 'resources' | 'resourceTemplates') => {
    const { method, show } = KINDS[kind]
    const ask: Ask = (params) => core.connections.request(server, { method, params, caller, signal: patience })
    try {
      for (const item of await pages(ask, kind)) show(exposed, server, item)
    } catch (error) {
      logger.debug({ server }, `${method}: ${messageOf(error)}`)
    }
  }
  await Promise.all(open.flatMap((server) => [learn(server, 'resourceTemplates'), learn(server, 'resources')]))
  return exposed.resourceTarget(uri)
}

type Ask = (params: { cursor?: string }) => Promise<RawResult>

async function pages(ask: Ask, kind: ListKind): Promise<Item[]> {
  const items: Item[] = []
  let cursor: unknown
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await ask(typeof cursor === 'string' ? { cursor } : {})
    const found = result[kind]
    if (Array.isArray(found)) items.push(...found)
    cursor = result.nextCursor
    if (typeof cursor !== 'string' || items.length >= MAX_ITEMS) break
  }
  return items.slice(0, MAX_ITEMS)
}
