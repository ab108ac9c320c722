/**
 * Carries a child's variables past the programs that isolate it. Some variables change what a program does (`LD_LIBRARY_PATH` names the
 * folder of its libraries, and the server may be able to write there), and those programs run before our files are covered. So they
 * get the variables under other names, and a shell gives them their own names just before the command. No value is in a command line.
 */
import { SYSTEM_PATH } from '../../lib/system-path.ts'

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/** A shell sets these itself, or refuses to set them. */
const OF_THE_SHELL = new Set(['PWD', 'OLDPWD', 'UID', 'EUID', 'PPID', 'SHELLOPTS', 'BASHOPTS', 'BASH_VERSINFO'])

/** `kept` are variables that all programs get as they are. `before` are the words that come before the command. */
export function carryEnvironment(
  env: Record<string, string>,
  kept: readonly string[]
): { env: Record<string, string>; before: string[] } {
  const carried = Object.entries(env).filter(([name]) => {
    return NAME.test(name) && !OF_THE_SHELL.has(name) && !kept.includes(name)
  })
  const values = carried.map(([, value], index) => [`MCP_ORCHESTRATOR_V${index}`, value])
  const exports = carried.map(([name], index) => `${name}="$MCP_ORCHESTRATOR_V${index}"`)
  const unset = values.map(([name]) => name)
  const script = `unset PATH
${exports.length > 0 ? `export ${exports.join(' ')}\nunset ${unset.join(' ')}` : ''}
exec "$@"`
  return {
    env: { PATH: SYSTEM_PATH, ...Object.fromEntries(values), ...pick(env, kept) },
    before: ['/bin/sh', '-c', script, 'mcp-orchestrator-child']
  }
}

function pick(env: Record<string, string>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
}
