import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { PATIENCE_MS } from '../../../tests/support/patience-ms.ts'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { openGrants } from '../../catalog/grants.ts'
import { readRegistry } from '../../catalog/registry.ts'
import { StoredTools, toolHash } from '../../catalog/stored-tools.ts'
import { loadSettings } from '../../config/load-settings.ts'
import { silentLogger } from '../../lib/logger.ts'
import { loadGateway } from '../load-gateway.ts'
import { openSharedParts } from '../shared-parts.ts'

afterEach(() => vi.useRealTimers())

const FOLLOWS_MS = 30_000

it('finds the tools that the serve whose store it uses has seen since', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const folder = temporaryFolder()
  const settings = loadSettings({ env: { DATA_DIR: folder, MCP_CONFIG: join(folder, 'mcp.json') } })
  const environment = { HOME: folder }
  const parts = await openSharedParts(settings, silentLogger, { environment })
  const registry = readRegistry(JSON.stringify({ mcpServers: { a: { command: 'none' } } }), settings.MCP_CONFIG)
  const options = { environment, grants: openGrants(settings), shared: { ...parts, storeDir: folder } }
  const { core, close } = await loadGateway(settings, silentLogger, options, registry)
  expect(core.index.tools('a')).toBeUndefined()
  const tool = { name: 'find_trains', description: 'Finds trains', inputSchema: { type: 'object' } }
  const { fingerprint = '' } = registry.servers.get('a') ?? {}
  const tools = [{ ...tool, hash: toolHash(tool) }]
  await new StoredTools(parts.keyValues).save('a', { fingerprint, seenAt: Date.now(), tools })
  vi.advanceTimersByTime(FOLLOWS_MS)
  await vi.waitFor(() => expect(core.index.tools('a')).toHaveLength(1), PATIENCE_MS)
  await close()
  await parts.close()
})
