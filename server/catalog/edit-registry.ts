import { AppError } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import { editFile } from './edit-file.ts'
import { readRegistry } from './registry.ts'

type RawServers = Record<string, unknown>

/**
 * Changes the servers in the file and leaves everything else in it as it is. The result is checked before the file is replaced,
 * in one step; a file that is not plain JSON is left to its owner, because its comments would be lost.
 */
function editRegistry(file: string, edit: (servers: RawServers) => void): Promise<void> {
  return editFile(file, (before = '{"mcpServers":{}}') => {
    const document = parsePlain(before, file)
    const root = isRecord(document.servers) && document.mcpServers === undefined ? 'servers' : 'mcpServers'
    const listed = document[root]
    const servers = isRecord(listed) ? listed : {}
    edit(servers)
    document[root] = servers
    const text = `${JSON.stringify(document, null, 2)}\n`
    readRegistry(text, file)
    return text
  })
}

/** None of them may be there already. */
export async function addServers(file: string, added: RawServers): Promise<void> {
  await editRegistry(file, (servers) => {
    const taken = Object.keys(added).find((name) => Object.hasOwn(servers, name))
    if (taken !== undefined) {
      const message = `There is a server "${taken}" in ${file} already: remove it first.`
      throw new AppError('conflict', 'server_exists', message)
    }
    for (const [name, raw] of Object.entries(added)) put(servers, name, raw)
  })
}

/** Also one that can't be read. */
export async function removeServer(file: string, name: string): Promise<void> {
  await editRegistry(file, (servers) => {
    if (!Object.hasOwn(servers, name)) throw unknown(name, file)
    delete servers[name]
  })
}

export async function switchServer(file: string, name: string, on: boolean): Promise<void> {
  await editRegistry(file, (servers) => {
    const raw = Object.hasOwn(servers, name) ? servers[name] : undefined
    if (!isRecord(raw)) throw unknown(name, file)
    const { disabled: _, enabled: __, ...others } = raw
    put(servers, name, on ? others : { ...others, enabled: false })
  })
}

/** Unlike assignment, this makes "__proto__" an ordinary member. */
function put(servers: RawServers, name: string, value: unknown): void {
  Object.defineProperty(servers, name, { value, configurable: true, enumerable: true, writable: true })
}

function unknown(name: string, file: string): AppError {
  return new AppError('not-found', 'unknown_server', `There is no server "${name}" in ${file}.`)
}

function parsePlain(text: string, file: string): Record<string, unknown> {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    // Says where it is wrong, if it is.
    readRegistry(text, file)
    throw new AppError(
      'conflict',
      'registry_has_comments',
      `${file} has comments or trailing commas: change it by hand.`
    )
  }
  if (isRecord(document)) return document
  throw new AppError('invalid', 'registry_malformed', `${file}, line 1: it must be an object.`)
}
