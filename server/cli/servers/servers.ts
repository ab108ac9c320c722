/** `servers` shows, edits and tests the entries of `mcp.json`. It prints text, or JSON with `--json`. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { terminalLine } from '../../../contract/hidden-characters.ts'
import { describeProblem, loadRegistry, type Registry } from '../../catalog/registry.ts'
import { sayWhatIsUsed, userDefaults } from '../../config/user-folders.ts'
import { AppError, isAppError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/near-names.ts'
import type { Command, CommandFlag, CommandInput } from '../command.ts'
import { usageError } from '../usage-error.ts'

const FLAGS: Record<string, CommandFlag> = {
  json: { type: 'boolean', help: 'print JSON' },
  yes: { type: 'boolean', help: "don't ask for confirmation", for: ['import', 'accept'] },
  as: { type: 'string', help: 'name of the imported server in mcp.json', for: ['import'] },
  set: { type: 'string', multiple: true, help: 'a value that the imported server wants, NAME=VALUE', for: ['import'] },
  remote: { type: 'boolean', help: "use the server's address rather than its package", for: ['import'] },
  clear: { type: 'boolean', help: 'delete all of it', for: ['usage'] },
  url: { type: 'string', help: 'address of a remote server', for: ['add'] },
  header: {
    type: 'string',
    multiple: true,
    help: 'a header of every request, "NAME: VALUE" or NAME=VALUE',
    for: ['add']
  },
  env: { type: 'string', multiple: true, help: 'a variable for the server, NAME=VALUE', for: ['add'] },
  owner: { type: 'string', help: 'log in or out for this owner only', for: ['login', 'logout'] },
  description: { type: 'string', help: 'what the server is for', for: ['add'] }
}
const COMMAND_AFTER_DASHES = "Put the server's command after a lone --: servers add NAME -- COMMAND …"
const MAX_NAMES: Record<string, number> = { list: 0, import: 1, fetch: 1 }

function refuseForeign(action: string, names: string[], { flags, rest }: Pick<CommandInput, 'flags' | 'rest'>): void {
  if (action === 'add' && names.length > 1 && rest.length === 0) throw usageError(`${COMMAND_AFTER_DASHES}.`)
  const flag = Object.keys(flags).find((name) => FLAGS[name]?.for?.includes(action) === false)
  const word = names[MAX_NAMES[action] ?? names.length] ?? (action === 'add' ? undefined : rest[0])
  const foreign = flag === undefined ? word && `"${word.slice(0, 100)}"` : `--${flag}`
  if (foreign === undefined) return
  const message = `"servers ${action}" does not take ${foreign}. See mcp-orchestrator servers --help.`
  throw usageError(message)
}

/** Says which server may be meant, or why an entry is left out. */
function explained(error: AppError, names: string[], { servers, problems }: Registry): AppError {
  const name = names.find((each) => !servers.has(each)) ?? ''
  const problem = problems.find(({ server, fatal }) => server === name && fatal)
  const hint = problem ? ` Its entry is left out: ${problem.reason}.` : didYouMean(name, servers.keys())
  return new AppError('not-found', 'unknown_server', `${error.message}${hint}`, { cause: error })
}

export const serversCommand: Command = {
  name: 'servers',
  summary: 'list, test, add, import and remove the MCP servers in mcp.json',
  usage: [
    'list                              list the servers in mcp.json',
    'test [NAME …]                     start servers and list their tools',
    'health [NAME …]                   show when each was last seen, and its last error',
    'logs NAME                         show what the server wrote to stderr',
    'add NAME [--env K=V] -- COMMAND … add a local server',
    'add NAME --url URL [--header K:V] add a remote server',
    'add JSON                          add what a client\'s docs show: \'{"name": {"command": …}}\'',
    'remove | enable | disable NAME',
    'login | logout NAME               log in to a remote server with OAuth, or out',
    'import [FILE]                     import the servers of other clients from their usual files, or from FILE',
    'fetch [URL]                       fetch the list of the public MCP Registry, or of another one with the same API',
    'search WORD …                     look through that list, offline',
    'import io.github.USER/SERVER      import a server of that list; also the file or the address of a server.json',
    'secret NAME                       store a secret that mcp.json refers to; asks for its value, or reads it from stdin',
    'accept [NAME …]                   review and accept changed tools, and changed servers that wait for their secrets',
    'usage [NAME …] [--clear]          show the past requests that routing learns from, or delete all of them'
  ],
  flags: FLAGS,
  mainSettings: ['MCP_CONFIG', 'DATA_DIR', 'CREDENTIALS_FILE', 'REDIS_URL'],
  // A flag after a name and a command belongs to the command.
  advice: ([action, name = '-', command = '-']) =>
    action === 'add' && !name.startsWith('-') && !command.startsWith('-') ? COMMAND_AFTER_DASHES : undefined,
  // Use the registry in this folder if there is one, otherwise the user's, like the stdio gateway.
  defaults: (env) => (existsSync('mcp.json') ? {} : userDefaults(env)),
  async run(settings, { words: [action = 'list', ...names], flags, rest, isNamed }) {
    // Loaded on demand: the gateway shares this bundle and must start fast.
    const { ACTIONS } = await import('./servers-actions.ts')
    const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
    if (!act) throw usageError(`There is no "servers ${action}". See mcp-orchestrator servers --help.`)
    refuseForeign(action, names, { flags, rest })
    const file = resolve(settings.MCP_CONFIG)
    sayWhatIsUsed(settings, isNamed)
    const registry = await loadRegistry(file, { optional: true })
    for (const problem of registry.problems) process.stderr.write(`${terminalLine(describeProblem(file, problem))}\n`)
    try {
      return await act({ settings, file, registry, names, flags, rest, json: flags.json === true })
    } catch (error) {
      throw isAppError(error, 'unknown_server') ? explained(error, names, registry) : error
    }
  }
}
