import { applyEdits, findNodeAtLocation, modify, type Node, parseTree, stripComments } from 'jsonc-parser'
import { AppError, hasCode } from '../lib/errors.ts'
import { readSmallFile } from '../lib/files/read-small-file.ts'
import { isRecord } from '../lib/is-record.ts'
import { alikeName } from '../lib/near-names.ts'
import { editFile } from './edit-file.ts'
import { parseJsonWithLines } from './json-with-lines.ts'
import { MAX_REGISTRY_BYTES, readRegistry } from './registry.ts'

export type RawEntry = Record<string, unknown>
type RawServers = Record<string, unknown>
/** The new value of a member; undefined removes it. */
type Change = [path: (string | number)[], value: unknown]

const LENIENT = { allowTrailingComma: true }

/** Changes the servers in the file and nothing else in it, not even comments. The result is checked before it replaces the file. */
async function editRegistry(file: string, edit: (servers: RawServers) => Change[], rename?: Rename): Promise<void> {
  await editFile(file, (before = '{\n  "mcpServers": {}\n}\n') => {
    let text = before.replace(/^\uFEFF/, '')
    const { root, servers } = listOf(text, file)
    const format = formatOf(text)
    for (const [path, value] of edit(servers)) {
      const name = String(path[0])
      const isNew = path.length === 1 && !Object.hasOwn(servers, name)
      const tree = isNew ? parseTree(text, [], LENIENT) : undefined
      const list = tree && findNodeAtLocation(tree, [root])
      const last = list?.children?.at(-1)
      text =
        list && last
          ? append(text, [list, last], `${JSON.stringify(name)}: ${JSON.stringify(value, null, format.indent)}`)
          : applyEdits(text, modify(text, [root, ...path], value, { formattingOptions: format }))
    }
    if (rename) text = renamed(text, root, rename)
    readRegistry(text, file)
    return text.endsWith('\n') ? text : `${text}\n`
  })
}

/** Unlike `modify`, this keeps a comment after the last member in its place. */
function append(text: string, [list, last]: [Node, Node], member: string): string {
  const close = list.offset + list.length - 1
  const between = text.slice(last.offset + last.length, close)
  const comma = stripComments(between).includes(',') ? '' : ','
  const lineStart = text.lastIndexOf('\n', last.offset) + 1
  const indent = /^[ \t]*/.exec(text.slice(lineStart, last.offset))?.[0] ?? ''
  const { eol } = formatOf(text)
  const added = `${eol}${member.replaceAll(/^(?!$)/gm, indent).replaceAll('\n', eol)}`
  const kept = between.trimEnd()
  return [
    text.slice(0, close - between.length),
    comma,
    kept,
    added,
    between.slice(kept.length),
    text.slice(close)
  ].join('')
}

function listOf(text: string, file: string): { root: string; servers: RawServers } {
  const document = parse(text, file)
  const root = isRecord(document.servers) && document.mcpServers === undefined ? 'servers' : 'mcpServers'
  return { root, servers: isRecord(document[root]) ? document[root] : {} }
}

function parse(text: string, file: string): Record<string, unknown> {
  try {
    const { value } = parseJsonWithLines(text)
    if (isRecord(value)) return value
  } catch {
    // Throws an error that says where the file is invalid.
    readRegistry(text, file)
  }
  throw new AppError('invalid', 'registry_malformed', `${file}, line 1: it must be an object.`)
}

/** New lines use the indentation of the existing ones. */
function formatOf(text: string) {
  const [, indent = '  '] = /\n([ \t]+)\S/.exec(text) ?? []
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  return { indent, insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol }
}

/** Throws if one of them already exists. */
export async function addServers(file: string, added: RawServers): Promise<void> {
  await editRegistry(file, (servers) => {
    const names = Object.keys(added)
    for (const [at, name] of names.entries()) {
      const taken = alikeName([...Object.keys(servers), ...names.slice(0, at)], name)
      if (taken !== undefined) throw exists(taken, file)
    }
    return Object.entries(added).map(([name, raw]) => [[name], raw])
  })
}

/** Also removes an entry that can't be read. */
export async function removeServer(file: string, name: string): Promise<void> {
  await editRegistry(file, (servers) => {
    if (!Object.hasOwn(servers, name)) throw unknown(name, file)
    return [[[name], undefined]]
  })
}

export async function switchServer(file: string, name: string, on: boolean): Promise<void> {
  await editRegistry(file, (servers) => {
    const raw = own(servers, name, file)
    const switches = ['disabled', 'enabled'].filter((key) => Object.hasOwn(raw, key))
    const removed = switches.map((key): Change => [[name, key], undefined])
    return on ? removed : [...removed, [[name, 'enabled'], false]]
  })
}

/** The entry as it is in the file now, with everything that the registry's reader would leave out. */
export function rawServer(file: string, name: string): RawEntry {
  const { servers } = listOf(readText(file).replace(/^\uFEFF/, ''), file)
  return own(servers, name, file)
}

/** A file that does not exist yet has no servers. */
function readText(file: string): string {
  try {
    return readSmallFile(file, MAX_REGISTRY_BYTES, { anyKind: true })
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '{ "mcpServers": {} }'
    throw error
  }
}

/**
 * Changes and renames one entry. `edit` gets the entry as it is while nobody else can change it, and throws if it is not the expected
 * one. Only values that differ are written, so the comments beside all others stay.
 */
export async function changeServer(
  file: string,
  { from, to }: Rename,
  edit: (current: RawEntry) => RawEntry
): Promise<void> {
  await editRegistry(
    file,
    (servers) => {
      const current = own(servers, from, file)
      const others = Object.keys(servers).filter((name) => name !== from)
      const taken = to === from ? undefined : alikeName(others, to)
      if (taken !== undefined) throw exists(taken, file)
      const mentioned =
        to === from ? [] : Object.entries(servers).flatMap(([name, raw]) => mentions(name, raw, { from, to }))
      return [...mentioned, ...differences([from], current, edit(current))]
    },
    { from, to }
  )
}

interface Rename {
  from: string
  to: string
}

/** Replaces the name alone, so that the entry and its comments stay as they are. */
function renamed(text: string, root: string, { from, to }: Rename): string {
  const tree = from === to ? undefined : parseTree(text, [], LENIENT)
  const [key] = (tree && findNodeAtLocation(tree, [root, from])?.parent?.children) ?? []
  return key ? text.slice(0, key.offset) + JSON.stringify(to) + text.slice(key.offset + key.length) : text
}

/** Other entries may name this one as their alternative. */
function mentions(name: string, raw: unknown, { from, to }: Rename): Change[] {
  const names = isRecord(raw) && Array.isArray(raw.alternatives) ? raw.alternatives : []
  return names.flatMap((each, at): Change[] => (each === from ? [[[name, 'alternatives', at], to]] : []))
}

function differences(path: (string | number)[], before: unknown, after: unknown): Change[] {
  if (isRecord(before) && isRecord(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    const of = (values: RawEntry, key: string) => (Object.hasOwn(values, key) ? values[key] : undefined)
    return [...keys].flatMap((key) => differences([...path, key], of(before, key), of(after, key)))
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length)
    return before.flatMap((item, at) => differences([...path, at], item, after[at]))
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [[path, after]]
}

function own(servers: RawServers, name: string, file: string): RawEntry {
  const raw = Object.hasOwn(servers, name) ? servers[name] : undefined
  if (isRecord(raw)) return raw
  throw unknown(name, file)
}

function exists(name: string, file: string): AppError {
  return new AppError('conflict', 'server_exists', `There is a server "${name}" in ${file} already: remove it first.`)
}

function unknown(name: string, file: string): AppError {
  return new AppError('not-found', 'unknown_server', `There is no server "${name}" in ${file}.`)
}
