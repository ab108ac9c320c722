import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/fixtures/core.ts'
import { memoryFacts } from '../connections/connections.fixture.ts'
import { AppError } from '../lib/errors.ts'
import { createPolicy } from '../policy/approval-policy.ts'
import { createDefinitionGuard } from '../policy/definition-guard.ts'
import { ServerDirectory } from './server-directory.ts'

const dir = temporaryFolder()
afterAll(() => discard(dir))

function directory(facts: ReturnType<typeof memoryFacts>): ServerDirectory {
  return new ServerDirectory({
    file: join(dir, 'mcp.json'),
    facts,
    registry: () => ({ servers: new Map(), problems: [] }),
    problem: () => undefined,
    reload: async () => {},
    core: () => Promise.reject(new AppError('internal', 'internal', 'not in this test')),
    policy: createPolicy([]),
    guard: createDefinitionGuard(facts),
    grants: { isWaiting: () => false, accept: async () => {} },
    log: async () => ''
  })
}

it('adds what another instance of the same store has shown, and nothing that was shown elsewhere', async () => {
  const facts = memoryFacts()
  const text = '{"mcpServers":{"files":{"command":"npx"}}}'
  const shown = await directory(facts).add({ text })
  const confirm = 'confirm' in shown ? String(shown.confirm) : ''
  const elsewhere = directory(memoryFacts()).add({ text, confirm })
  await expect(elsewhere).rejects.toMatchObject({ code: 'confirmation_stale' })
  expect(await directory(facts).add({ text, confirm })).toEqual({ added: ['files'] })
  expect(JSON.parse(readFileSync(join(dir, 'mcp.json'), 'utf8'))).toEqual({ mcpServers: { files: { command: 'npx' } } })
})
