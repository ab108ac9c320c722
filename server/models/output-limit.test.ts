import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { type Connected, collect, connect, WIRES, type Wire } from '../../tests/fixtures/model-servers/wires.ts'
import { packageRoot } from '../lib/files/package-root.ts'

let connected: Connected | undefined
afterEach(() => connected?.server.close())

const claude = WIRES.find(({ name }) => name === 'anthropic') as Wire

async function limitOf(allowed: number, more: { maxOutputTokens?: number } = {}): Promise<unknown> {
  const models = [{ type: 'model', id: 'claude-test', display_name: 'Claude', max_tokens: allowed }]
  connected = await connect(claude, { models, otherwise: () => ({ text: 'ok' }) })
  await connected.models.catalog()
  await collect(connected.step('hi', more))
  const body = connected.server.requests.findLast(({ path }) => path.endsWith('/messages'))?.body
  return (body as Record<string, unknown>).max_tokens
}

test('without MAX_OUTPUT_TOKENS, Claude gets its own limit, up to what the README says', async () => {
  const readme = readFileSync(join(packageRoot(), 'README.md'), 'utf8')
  const most = Number(/for Claude at most (\d+)/.exec(readme)?.[1])
  expect(await limitOf(8000)).toBe(8000)
  await connected?.server.close()
  expect(await limitOf(128_000)).toBe(most)
})

test('MAX_OUTPUT_TOKENS is sent to Claude', async () => {
  expect(await limitOf(128_000, { maxOutputTokens: 50_000 })).toBe(50_000)
})
