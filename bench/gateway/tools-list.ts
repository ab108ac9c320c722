/** Compares the size of the gateway's tool list with the lists of eight servers. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../../server/lib/errors.ts'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { connectStdio, registryFolder, startGateway } from './ways.ts'

/** The package, the file to run, and its arguments. */
const SERVERS: Record<string, { bin: string; args?: string[]; env?: Record<string, string> }> = {
  '@modelcontextprotocol/server-everything': { bin: 'dist/index.js' },
  '@modelcontextprotocol/server-filesystem': { bin: 'dist/index.js', args: [tmpdir()] },
  '@modelcontextprotocol/server-memory': { bin: 'dist/index.js' },
  '@modelcontextprotocol/server-sequential-thinking': { bin: 'dist/index.js' },
  '@eslint/mcp': { bin: 'src/mcp-cli.js' },
  'mongodb-mcp-server': { bin: 'dist/esm/index.js' },
  '@playwright/mcp': { bin: 'cli.js' },
  'chrome-devtools-mcp': { bin: 'build/src/bin/chrome-devtools-mcp.js' }
}
const INSTALL_MS = 300_000
const LIST_MS = 60_000

export async function toolsListBytes(): Promise<object> {
  const cache = join(tmpdir(), 'mcp-orchestrator-bench')
  const missing = Object.keys(SERVERS).filter((name) => home(name, cache) === undefined)
  const problem = missing.length > 0 ? await install(missing, cache) : undefined
  const children: Record<string, object> = {}
  let sum = 0
  for (const name of Object.keys(SERVERS)) {
    const measured = await measure(name, cache).catch((error) => ({ problem: messageOf(error).slice(0, 200) }))
    children[name] = measured
    if ('bytes' in measured) sum += measured.bytes
  }
  const gateway = await gatewayList()
  return { gateway, sumOfChildren: sum, share: gateway.bytes / sum, ...(problem ? { problem } : {}), children }
}

async function install(packages: string[], cache: string): Promise<string | undefined> {
  console.error(`gateway: installing ${packages.join(', ')} …`)
  mkdirSync(cache, { recursive: true })
  const args = ['install', '--prefix', cache, '--ignore-scripts', '--no-audit', '--no-fund', ...packages]
  try {
    await promisify(execFile)('npm', args, { timeout: INSTALL_MS })
    return undefined
  } catch (error) {
    return `npm could not install ${packages.join(', ')}: ${messageOf(error).slice(0, 200)}`
  }
}

function home(name: string, cache: string): string | undefined {
  const roots = [join(packageRoot(), 'node_modules'), join(cache, 'node_modules')]
  return roots.map((root) => join(root, name)).find((dir) => existsSync(join(dir, 'package.json')))
}

async function measure(name: string, cache: string): Promise<{ tools: number; bytes: number } | { problem: string }> {
  const dir = home(name, cache)
  const { bin = '', args = [], env = {} } = SERVERS[name] ?? {}
  if (dir === undefined) return { problem: 'not installed' }
  const { client } = await connectStdio(process.execPath, [join(dir, bin), ...args], env, 'auto')
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
