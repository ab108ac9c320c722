import { applyEdits, findNodeAtLocation, modify, type Node, parseTree, stripComments } from 'jsonc-parser'
import { AppError } from '../lib/errors.ts'
import { isRecord } from '../lib/is-record.ts'
import { editFile } from './edit-file.ts'
import { parseJsonWithLines } from './json-with-lines.ts'
import { readRegistry } from './registry.ts'

type RawServers = Record<string, unknown>
/** The new value of a member; undefined removes it. */
type Change = [path: string[], value: unknown]

const LENIENT = { allowTrailingComma: true }

/** Changes the servers in the file and nothing else in it, not even comments. The result is checked before it replaces the file. */
async function editRegistry(file: string, edit: (servers: RawServers) => Change[]): Promise<void> {
  await editFile(file, (before = '{\n  "mcpServers": {}\n}\n') => {
    let text = before.replace(/^\uFEFF/, '')
    const document = parse(text, file)
    const root = isRecord(document.servers) && document.mcpServers === undefined ? 'servers' : 'mcpServers'
    const servers = isRecord(document[root]) ? document[root] : {}
    const format = formatOf(text)
    for (const [path, value] of edit(servers)) {
      const [name = ''] = path
      const isNew = path.length === 1 && !Object.hasOwn(servers, name)
      const tree = isNew ? parseTree(text, [], LENIENT) : undefined
      const list = tree && findNodeAtLocation(tree, [root])
      const last = list?.children?.at(-1)
      text =
        list && last
          ? append(text, [list, last], `${JSON.stringify(name)}: ${JSON.stringify(value, null, format.indent)}`)
          : applyEdits(text, modify(text, [root, ...path], value, { formattingOptions: format }))
    }
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
    const taken = Object.keys(added).find((name) => Object.hasOwn(servers, name))
    if (taken !== undefined) {
      const message = `There is a server "${taken}" in ${file} already: remove it first.`
      throw new AppError('conflict', 'server_exists', message)
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
    const raw = Object.hasOwn(servers, name) ? servers[name] : undefined
    if (!isRecord(raw)) throw unknown(name, file)
    const switches = ['disabled', 'enabled'].filter((key) => Object.hasOwn(raw, key))
    const removed = switches.map((key): Change => [[name, key], undefined])
    return on ? removed : [...removed, [[name, 'enabled'], false]]
  })
}

function unknown(name: string, file: string): AppError {
  return new AppError('not-found', 'unknown_server', `There is no server "${name}" in ${file}.`)
}
