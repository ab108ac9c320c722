import { homedir } from 'node:os'
import { join } from 'node:path'

type Environment = Record<string, string | undefined>

/** Where a program that is started anywhere keeps its settings and its state: the XDG folders. */
function userFolders(env: Environment): { config: string; data: string } {
  const home = env.HOME || homedir()
  const under = (base: string | undefined, fallback: string) =>
    join(base?.startsWith('/') ? base : join(home, fallback), 'mcp-orchestrator')
  return { config: under(env.XDG_CONFIG_HOME, '.config'), data: under(env.XDG_DATA_HOME, '.local/share') }
}

export function userDefaults(env: Environment): { MCP_CONFIG: string; DATA_DIR: string } {
  const { config, data } = userFolders(env)
  return { MCP_CONFIG: join(config, 'mcp.json'), DATA_DIR: data }
}
