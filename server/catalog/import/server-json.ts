/**
 * Reads a `server.json`, the format of the public MCP Registry. Strangers publish these files, so everything in them is hostile.
 * Invariant: what comes out is limited in size, has no hidden characters, and refers to no secret or variable of this machine.
 */
import { hasHidden, revealPlainly } from '../../../contract/hidden-characters.ts'
import { isRecord } from '../../lib/is-record.ts'
import { EntryProblem } from '../entry-values.ts'

/** A value that a server wants: a variable, a header, an argument, or a part of one of them. */
export interface Input {
  description?: string
  isRequired: boolean
  isSecret: boolean
  /** Set by the publisher; a user can't change it. May contain placeholders such as `{name}`, filled from `variables`. */
  value?: string
  default?: string
  choices: string[]
  variables: Record<string, Input>
}

export interface NamedInput extends Input {
  name: string
}

export interface Argument extends Input {
  /** The flag with its dashes; undefined for a positional argument. */
  flag?: string
  /** The name of a positional argument in the question for its value. */
  hint?: string
}

export interface Package {
  registryType: string
  identifier: string
  version?: string
  baseUrl?: string
  transport: string
  hasRuntimeArguments: boolean
  args: Argument[]
  env: NamedInput[]
}

export interface Remote {
  type: string
  url: string
  headers: NamedInput[]
  variables: Record<string, Input>
}

export interface ServerJson {
  name: string
  version?: string
  description?: string
  packages: Package[]
  remotes: Remote[]
}

type Raw = Record<string, unknown>

const MAX_DESCRIPTION = 300
const MAX_TEXT = 2000
const MAX_ITEMS = 100
const NAME = /^[A-Za-z0-9][A-Za-z0-9.-]{0,119}\/[A-Za-z0-9][A-Za-z0-9._-]{0,119}$/

export function isServerName(text: string): boolean {
  return NAME.test(text)
}

/** The registry's API wraps the file: `{server, _meta}`. Undefined if it is something else. */
export function serverJsonIn(value: unknown): Raw | undefined {
  const inner = isRecord(value) && isRecord(value.server) ? value.server : value
  if (!isRecord(inner) || typeof inner.name !== 'string') return undefined
  return Array.isArray(inner.packages) || Array.isArray(inner.remotes) ? inner : undefined
}

/** Throws EntryProblem. */
export function readServerJson(raw: Raw): ServerJson {
  const name = plain(raw.name, ['name'])
  if (!isServerName(name)) throw new EntryProblem(['name'], 'must be like "io.github.user/server"')
  const description = prose(raw.description)
  const version = raw.version === undefined ? undefined : plain(raw.version, ['version'])
  return {
    name,
    ...(version === undefined ? {} : { version }),
    ...(description === undefined ? {} : { description }),
    packages: list(raw.packages, ['packages']).map(([item, path]) => readPackage(item, path)),
    remotes: list(raw.remotes, ['remotes']).map(([item, path]) => readRemote(item, path))
  }
}

function readPackage(raw: Raw, path: string[]): Package {
  const optional = (key: string) => (raw[key] === undefined ? undefined : plain(raw[key], [...path, key]))
  const [version, baseUrl] = [optional('version'), optional('registryBaseUrl')]
  const { type = '' } = isRecord(raw.transport) ? raw.transport : {}
  return {
    registryType: plain(raw.registryType, [...path, 'registryType']),
    identifier: plain(raw.identifier, [...path, 'identifier']),
    ...(version === undefined ? {} : { version }),
    ...(baseUrl === undefined ? {} : { baseUrl }),
    transport: String(type),
    hasRuntimeArguments: list(raw.runtimeArguments, [...path, 'runtimeArguments']).length > 0,
    args: list(raw.packageArguments, [...path, 'packageArguments']).map(([item, at]) => readArgument(item, at)),
    env: list(raw.environmentVariables, [...path, 'environmentVariables']).map(([item, at]) =>
      named(item, at, /^[A-Za-z_]\w{0,99}$/)
    )
  }
}

function readRemote(raw: Raw, path: string[]): Remote {
  return {
    type: plain(raw.type, [...path, 'type']),
    url: plain(raw.url, [...path, 'url']),
    headers: list(raw.headers, [...path, 'headers']).map(([item, at]) => named(item, at, /^[A-Za-z0-9-]{1,100}$/)),
    variables: readVariables(raw.variables, [...path, 'variables'])
  }
}

function readArgument(raw: Raw, path: string[]): Argument {
  const input = readInput(raw, path)
  if (raw.type !== 'named') {
    return { ...input, ...(raw.valueHint === undefined ? {} : { hint: plain(raw.valueHint, [...path, 'valueHint']) }) }
  }
  const flag = plain(raw.name, [...path, 'name'])
  if (!/^-{0,2}[A-Za-z0-9][\w.-]{0,99}$/.test(flag)) throw new EntryProblem([...path, 'name'], 'is not a flag')
  return { ...input, flag }
}

function named(raw: Raw, path: string[], pattern: RegExp): NamedInput {
  const name = plain(raw.name, [...path, 'name'])
  if (!pattern.test(name)) throw new EntryProblem([...path, 'name'], 'is not a valid name')
  return { ...readInput(raw, path), name }
}

function readInput(raw: Raw, path: string[]): Input {
  const description = prose(raw.description)
  const text = (key: string) => (raw[key] === undefined ? {} : { [key]: plain(raw[key], [...path, key]) })
  const choices = Array.isArray(raw.choices) ? raw.choices.slice(0, MAX_ITEMS) : []
  return {
    ...(description === undefined ? {} : { description }),
    isRequired: raw.isRequired === true,
    isSecret: raw.isSecret === true,
    ...text('value'),
    ...text('default'),
    choices: choices.map((choice, at) => plain(choice, [...path, 'choices', String(at)])),
    variables: readVariables(raw.variables, [...path, 'variables'])
  }
}

function readVariables(value: unknown, path: string[]): Record<string, Input> {
  if (!isRecord(value)) return {}
  const entries = Object.entries(value)
  if (entries.length > MAX_ITEMS) throw new EntryProblem(path, `has more than ${MAX_ITEMS} items`)
  return Object.fromEntries(
    entries.map(([name, raw]) => {
      if (!/^[A-Za-z_][\w-]{0,99}$/.test(name)) throw new EntryProblem(path, 'has a name that is not valid')
      // One level only: a variable's own value is fixed text.
      const { variables: _, ...input } = readInput(isRecord(raw) ? raw : {}, [...path, name])
      return [name, { ...input, variables: {} }]
    })
  )
}

function list(value: unknown, path: string[]): [Raw, string[]][] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value) || value.length > MAX_ITEMS)
    throw new EntryProblem(path, `must be a list of at most ${MAX_ITEMS} items`)
  return value.map((item, index) => {
    if (!isRecord(item)) throw new EntryProblem([...path, String(index)], 'must be an object')
    return [item, [...path, String(index)]]
  })
}

/** Text that becomes part of a command, a variable or an address. */
function plain(value: unknown, path: string[]): string {
  const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  if (typeof text !== 'string' || text.length > MAX_TEXT || hasHidden(text) || /[\n\r\t]/.test(text))
    throw new EntryProblem(path, `must be a text of at most ${MAX_TEXT} visible characters on one line`)
  // Otherwise a publisher could have the secrets of other servers filled in.
  if (text.includes(`\${`)) throw new EntryProblem(path, `must contain no \${`)
  return text
}

function prose(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.trim() === '') return undefined
  return revealPlainly(value.slice(0, MAX_DESCRIPTION), 'prose').replace(/\s+/g, ' ').trim()
}
