import { expect, it } from 'vitest'
import { readRegistry } from '../catalog/registry.ts'
import { StoredTools } from '../catalog/stored-tools.ts'
import { readTools } from '../connections/wire/read-tools.ts'
import { silentLogger } from '../lib/logger.ts'
import { fakeRouter } from '../routing/fake-router.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { ToolIndex } from './tool-index.ts'

it('gives the router only the beginning of a long description', async () => {
  const registry = readRegistry('{"mcpServers":{"a":{"command":"x"}}}', 'mcp.json')
  let chars = 0
  const router = {
    ...fakeRouter(),
    setServer: (_server: string, tools: readonly { description: string }[]) => {
      chars = tools.reduce((sum, { description }) => sum + description.length, 0)
    }
  }
  const index = new ToolIndex({ stored: new StoredTools(fakeKeyValueStore()), router, logger: silentLogger })
  await index.load(registry)
  const listed = Array.from({ length: 100 }, (_, at) => ({
    name: `t${at}`,
    description: 'x '.repeat(10_000),
    inputSchema: {}
  }))
  for (const entry of index.entries()) index.listed(entry, readTools(listed), {})
  expect(chars).toBe(100 * 4000)
  expect(index.tool('a', 't1')?.description).toHaveLength(20_000)
})

it('uses what another instance has seen since, if it is about the same entry', async () => {
  const registry = readRegistry('{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}', 'mcp.json')
  const other = readRegistry('{"mcpServers":{"a":{"command":"x"},"b":{"command":"changed"}}}', 'mcp.json')
  const keyValues = fakeKeyValueStore()
  const open = async (known: typeof registry) => {
    const index = new ToolIndex({ stored: new StoredTools(keyValues), router: fakeRouter(), logger: silentLogger })
    await index.load(known)
    return index
  }
  const [here, there] = [await open(registry), await open(other)]
  const changed: string[] = []
  here.onChange((server) => changed.push(server))
  const tools = readTools([{ name: 't', description: 'does it', inputSchema: {} }])
  for (const entry of there.entries()) there.listed(entry, tools, {})
  await here.reload()
  expect(here.unseen()).toEqual(['b'])
  expect(changed).toEqual(['a'])
  await here.reload()
  expect(changed).toEqual(['a'])
})
