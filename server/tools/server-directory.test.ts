import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { AppError } from '../lib/errors.ts'
import { createPolicy } from '../policy/approval-policy.ts'
import { createDefinitionGuard } from '../policy/definition-guard.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { ServerDirectory } from './server-directory.ts'

const dir = temporaryFolder()
afterAll(() => discard(dir))

function directory(keyValues: ReturnType<typeof fakeKeyValueStore>): ServerDirectory {
  return new ServerDirectory({
    file: join(dir, 'mcp.json'),
    keyValues,
    registry: () => ({ servers: new Map(), problems: [] }),
    problem: () => undefined,
    reload: async () => {},
    core: () => Promise.reject(new AppError('internal', 'internal', 'not in this test')),
    policy: createPolicy([]),
    guard: createDefinitionGuard(keyValues),
    grants: { isWaiting: () => false, accept: async () => {} },
    log: async () => ''
  })
}

it('accepts a confirmation from another instance on the same store, but from no other store', async () => {
  const keyValues = fakeKeyValueStore()
  const text = '{"mcpServers":{"files":{"command":"npx"}}}'
  const shown = await directory(keyValues).add({ text })
  const confirm = 'confirm' in shown ? String(shown.confirm) : ''
  const elsewhere = directory(fakeKeyValueStore()).add({ text, confirm })
  await expect(elsewhere).rejects.toMatchObject({ code: 'confirmation_stale' })
  expect(await directory(keyValues).add({ text, confirm })).toEqual({ added: ['files'] })
  expect(JSON.parse(readFileSync(join(dir, 'mcp.json'), 'utf8'))).toEqual({ mcpServers: { files: { command: 'npx' } } })
})
