/**
 * Turns a `server.json` into an entry of `mcp.json`. Invariant: the program that is run is one of ours, with an exact version of a
 * package; the publisher chooses the package, its arguments and its variables, never the program or its options.
 */
import { EntryProblem } from '../entry-values.ts'
import { LOADERS } from '../shown-value.ts'
import { freeSecretName } from './secret-names.ts'
import type { Argument, Input, NamedInput, Package, Remote, ServerJson } from './server-json.ts'

/** A value that the user must give. */
export interface WantedValue {
  name: string
  description?: string
  choices: string[]
}

export interface ServerJsonEntry {
  raw: Record<string, unknown>
  /** Sentences without the full stop. */
  notes: string[]
  /** Required values that are missing: `raw` is incomplete until they are there. */
  missing: WantedValue[]
}

interface Values {
  /** From the user, by the names that `missing` shows. */
  given: ReadonlyMap<string, string>
  /** The name of the entry; part of the names of its secrets. */
  server: string
  /** Whether a secret of this name has a value, or another entry uses it. */
  isTaken?: (secret: string) => boolean
}

interface Program {
  command: string
  args(identifier: string, version: string | undefined): string[]
  identifier: RegExp
  /** A version of exactly one package. Anything else, such as `1.x`, is a range or a name that the publisher can move. */
  version: RegExp
  hosts: string[]
}

const SUFFIX = '(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?(\\+[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?'
const NUMBER = '(0|[1-9]\\d{0,15})'
/** They run whatever their arguments say. `uvx` takes some of these names for an interpreter, not for a package. */
const INTERPRETERS =
  /^(c?python|pypy|graalpy|pyodide|cp|pp|gp|ipython|node|deno|bun|tsx|ts-node|npm|npx|pnpm|yarn|corepack|zx)w?[\d.t+-]*$/i
const MAX_VERSION = 100
const at = (version: string | undefined) => (version === undefined ? '' : `@${version}`)
const PROGRAMS: Record<string, Program> = {
  npm: {
    command: 'npx',
    args: (identifier, version) => ['-y', `${identifier}${at(version)}`],
    identifier: /^(@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*$/i,
    version: new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}${SUFFIX}$`),
    hosts: ['registry.npmjs.org']
  },
  pypi: {
    command: 'uvx',
    args: (identifier, version) => [`${identifier}${at(version)}`],
    identifier: /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
    version: /^\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?$/i,
    hosts: ['pypi.org', 'files.pythonhosted.org']
  },
  nuget: {
    command: 'dnx',
    args: (identifier, version) => [`${identifier}${at(version)}`, '--yes', '--'],
    identifier: /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/,
    version: new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}(\\.${NUMBER})?${SUFFIX}$`),
    hosts: ['api.nuget.org']
  }
}
const WHY_NOT: Record<string, string> = {
  oci: 'a container image: servers can not reach the container engine here. Add it with "sandbox" and its command',
  mcpb: 'an MCP bundle, which is not supported'
}

/** Throws EntryProblem if no package and no address can be used. `remote`: prefer an address. */
export function entryOf(server: ServerJson, values: Values, { remote = false } = {}): ServerJsonEntry {
  const reasons: string[] = []
  const about = server.description === undefined ? {} : { description: server.description }
  const found = remote
    ? (reachable(server.remotes) ?? runnable(server.packages, reasons))
    : (runnable(server.packages, reasons) ?? reachable(server.remotes))
  if (found === undefined) {
    const why = reasons.length > 0 ? `: ${reasons.join('; ')}` : ''
    throw new EntryProblem([], `has no package and no address that can be used here${why}`)
  }
  const entry = 'url' in found ? remoteEntry(found, values) : localEntry(found, values)
  return { ...entry, raw: { ...entry.raw, ...about } }
}

function runnable(packages: Package[], reasons: string[]): Package | undefined {
  return packages.find((each) => {
    const reason = unusable(each)
    if (reason !== undefined) reasons.push(`"${each.identifier}" is ${reason}`)
    return reason === undefined
  })
}

function unusable({ registryType, identifier, version, baseUrl, transport, ...rest }: Package): string | undefined {
  const program = Object.hasOwn(PROGRAMS, registryType) ? PROGRAMS[registryType] : undefined
  if (program === undefined) return WHY_NOT[registryType] ?? `of the kind "${registryType}", which is not supported`
  if (!program.identifier.test(identifier)) return 'not the name of a package'
  if (INTERPRETERS.test(identifier)) return 'a program that runs whatever its arguments say: add it with "servers add"'
  if (version !== undefined && (version.length > MAX_VERSION || !program.version.test(version)))
    return 'given in a version that is not exact'
  if (transport !== '' && transport !== 'stdio') return `a server over "${transport}" that must be started by itself`
  if (baseUrl !== undefined && !program.hosts.includes(URL.parse(baseUrl)?.hostname ?? ''))
    return `from ${baseUrl}, which is not the usual place for such packages`
  // They could make the program run something else.
  if (rest.hasRuntimeArguments && registryType !== 'npm')
    return `a package that sets options of ${program.command}: add it with "servers add"`
  return undefined
}

function reachable(remotes: Remote[]): Remote | undefined {
  return remotes.find(({ type }) => type === 'streamable-http') ?? remotes.find(({ type }) => type === 'sse')
}

function localEntry(from: Package, values: Values): ServerJsonEntry {
  const { command, args } = PROGRAMS[from.registryType] ?? { command: '', args: () => [] }
  const filler = new Filler(values)
  const words = from.args.flatMap((argument) => filler.argument(argument))
  const env = filler.named(from.env)
  const raw = {
    command,
    args: [...args(from.identifier, from.version), ...words],
    ...(Object.keys(env).length > 0 ? { env } : {})
  }
  const isLoose = from.version === undefined
  const notes = [
    ...filler.notes,
    ...(isLoose ? ['it names no version: each start may run another one'] : []),
    ...(from.hasRuntimeArguments ? [`its options for ${command} are not taken over`] : [])
  ]
  return { raw, notes, missing: filler.missing }
}

function remoteEntry({ type, url, headers, variables }: Remote, values: Values): ServerJsonEntry {
  const filler = new Filler(values)
  const filled = url.replace(/\{([A-Za-z_][\w-]*)\}/g, (whole, name: string) => {
    const input = Object.hasOwn(variables, name) ? variables[name] : undefined
    if (input === undefined) return whole
    if (input.isSecret) throw new EntryProblem(['remotes'], 'wants a secret in its address, which logs would keep')
    return encodeURIComponent(filler.value(name, { ...input, isRequired: true }) ?? '')
  })
  const sent = filler.named(headers)
  const { protocol, hostname } = URL.parse(filled) ?? {}
  const isHere = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]'
  if (filler.missing.length === 0 && protocol !== 'https:' && !(protocol === 'http:' && isHere))
    throw new EntryProblem(['remotes'], 'has an address that does not begin with https://')
  const raw = {
    url: filled,
    ...(type === 'sse' ? { type } : {}),
    ...(Object.keys(sent).length > 0 ? { headers: sent } : {})
  }
  return { raw, notes: filler.notes, missing: filler.missing }
}

/** Fills inputs with what the user gave or the publisher set, and collects what is missing. */
class Filler {
  readonly notes: string[] = []
  readonly missing: WantedValue[] = []
  readonly #values: Values

  constructor(values: Values) {
    this.#values = values
  }

  argument(argument: Argument): string[] {
    const { flag, hint } = argument
    const name = hint ?? flag ?? 'argument'
    if (argument.isSecret || Object.values(argument.variables).some(({ isSecret }) => isSecret))
      throw new EntryProblem(['packageArguments'], `wants the secret "${name}" on its command line, which is public`)
    const value = this.value(name, argument)
    if (flag === undefined) return value === undefined ? [] : [value]
    // A flag without a value is a switch, unless it wants one.
    if (value === undefined) return argument.isRequired ? [flag] : []
    if (value === 'true' && argument.value === undefined && argument.default === undefined) return [flag]
    return flag.startsWith('--') ? [`${flag}=${value}`] : [flag, value]
  }

  named(inputs: NamedInput[]): Record<string, string> {
    const filled: Record<string, string> = {}
    for (const input of inputs) {
      const { name, isSecret, isRequired } = input
      if (LOADERS.test(name) && (input.value ?? input.default) !== undefined)
        throw new EntryProblem([name], 'can make the command run something else: add this server with "servers add"')
      const own = this.#values.given.get(name)
      const value = isSecret && own === undefined ? this.#secret(input) : this.value(name, input)
      if (value !== undefined) filled[name] = value
      else if (!isRequired) this.notes.push(optionalNote(input))
    }
    return filled
  }

  /** Undefined if nothing is set; a required value is then missing. */
  value(name: string, input: Input): string | undefined {
    if (input.value !== undefined) return this.#template(input.value, input.variables)
    const own = this.#values.given.get(name)
    const value = own ?? input.default
    if (own !== undefined && input.choices.length > 0 && !input.choices.includes(own))
      throw new EntryProblem([name], `must be one of ${input.choices.join(', ')}`)
    if (value === undefined && input.isRequired) this.#miss(name, input)
    return value
  }

  #template(text: string, variables: Record<string, Input>): string {
    return text.replace(/\{([A-Za-z_][\w-]*)\}/g, (whole, name: string) => {
      const input = Object.hasOwn(variables, name) ? variables[name] : undefined
      if (input === undefined) return whole
      if (input.isSecret && !this.#values.given.has(name)) return this.#secretNamed(name)
      return this.value(name, { ...input, isRequired: true }) ?? ''
    })
  }

  /** An optional secret is left to the user: without it the server starts, and a placeholder without a value would prevent that. */
  #secret({ name, value, isRequired, variables }: NamedInput): string | undefined {
    if (value !== undefined) return this.#template(value, variables)
    return isRequired ? this.#secretNamed(name) : undefined
  }

  /** A new name: otherwise a publisher could choose names that make the one of a secret of another server, or of this machine. */
  #secretNamed(name: string): string {
    const { server, isTaken = () => false } = this.#values
    const { key, preferred } = freeSecretName(server, name, isTaken)
    if (key !== preferred) this.notes.push(`"${name}" becomes the secret ${key}, because ${preferred} is there already`)
    return `\${secret:${key}}`
  }

  #miss(name: string, { description, choices }: Input): void {
    if (this.missing.some((each) => each.name === name)) return
    this.missing.push({ name, ...(description === undefined ? {} : { description }), choices })
  }
}

function optionalNote({ name, description }: NamedInput): string {
  const about = description === undefined ? '' : ` (${description.replace(/\.$/, '')})`
  return `"${name}" can be set${about}: give it with --set ${name}=VALUE`
}
