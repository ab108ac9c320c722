/** Eight real servers, and the size of the gateway's tool list compared with theirs. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../../server/lib/errors.ts'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { connectStdio, registryFolder, startGateway } from './ways.ts'

/** The package, the file to run, and its arguments. What is not a dev dependency of ours is installed in this version. */
const SERVERS: Record<string, { bin: string; args?: string[]; env?: Record<string, string>; version?: string }> = {
  '@modelcontextprotocol/server-everything': { bin: 'dist/index.js' },
  '@modelcontextprotocol/server-filesystem': { bin: 'dist/index.js', args: [tmpdir()] },
  '@modelcontextprotocol/server-memory': { bin: 'dist/index.js' },
  '@modelcontextprotocol/server-sequential-thinking': { bin: 'dist/index.js' },
  '@eslint/mcp': { bin: 'src/mcp-cli.js', version: '0.3.13' },
  'mongodb-mcp-server': { bin: 'dist/esm/index.js', version: '3.0.4' },
  '@playwright/mcp': { bin: 'cli.js', version: '0.0.83' },
  'chrome-devtools-mcp': { bin: 'build/src/bin/chrome-devtools-mcp.js', version: '1.11.0' }
}
const INSTALL_MS = 300_000
const LIST_MS = 60_000

const CACHE = join(tmpdir(), 'mcp-orchestrator-bench')

export interface Entry {
  command: string
  args: string[]
  env: Record<string, string>
}

export interface EightServers {
  /** Those that are installed. */
  servers: Map<string, Entry>
  problem: string | undefined
}

/** Installs what is missing. */
export async function eightServers(): Promise<EightServers> {
  const missing = Object.keys(SERVERS).filter((name) => home(name) === undefined)
  const problem = missing.length > 0 ? await install(missing) : undefined
  const servers: EightServers['servers'] = new Map()
  for (const [name, { bin, args = [], env = {} }] of Object.entries(SERVERS)) {
    const dir = home(name)
    if (dir !== undefined) servers.set(name, { command: process.execPath, args: [join(dir, bin), ...args], env })
  }
  return { servers, problem }
}

export async function toolsListBytes({ servers, problem }: EightServers): Promise<object> {
  const children: Record<string, object> = {}
  let sum = 0
  for (const name of Object.keys(SERVERS)) {
    const measured = await measure(servers.get(name)).catch((error) => ({ problem: messageOf(error).slice(0, 200) }))
    children[name] = measured
    if ('bytes' in measured) sum += measured.bytes
  }
  const gateway = await gatewayList()
  return { gateway, sumOfChildren: sum, share: gateway.bytes / sum, ...(problem ? { problem } : {}), children }
}

async function install(packages: string[]): Promise<string | undefined> {
  console.error(`gateway: installing ${packages.join(', ')} …`)
  mkdirSync(CACHE, { recursive: true })
  const args = ['install', '--prefix', CACHE, '--ignore-scripts', '--no-audit', '--no-fund', ...packages.map(pinned)]
  try {
    await promisify(execFile)('npm', args, { timeout: INSTALL_MS })
    return undefined
  } catch (error) {
    return `npm could not install ${packages.join(', ')}: ${messageOf(error).slice(0, 200)}`
  }
}

const pinned = (name: string) => `${name}@${SERVERS[name]?.version ?? 'latest'}`

function home(name: string): string | undefined {
  const roots = [join(packageRoot(), 'node_modules'), join(CACHE, 'node_modules')]
  const wanted = SERVERS[name]?.version
  return roots
    .map((root) => join(root, name))
    .find((dir) => {
      const file = join(dir, 'package.json')
      return existsSync(file) && (wanted === undefined || JSON.parse(readFileSync(file, 'utf8')).version === wanted)
    })
}

async function measure(entry: Entry | undefined): Promise<{ tools: number; bytes: number } | { problem: string }> {
  if (entry === undefined) return { problem: 'not installed' }
  const { client } = await connectStdio(entry.command, entry.args, entry.env, 'auto')
  try {
    const { tools } = await client.listTools(undefined, { timeout: LIST_MS })
    return { tools: tools.length, bytes: Buffer.byteLength(JSON.stringify(tools)) }
  } finally {
    await client.close()
  }
}

async function gatewayList() {
  const folder = registryFolder({})
  const { client } = await startGateway(folder)
  const { tools } = await client.listTools()
  await client.close()
  folder.remove()
  return { tools: tools.length, bytes: Buffer.byteLength(JSON.stringify(tools)) }
}
