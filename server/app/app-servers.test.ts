import { describe, expect, it } from 'vitest'
import { PROGRAMS, ROUTER, WORKSPACE } from '../../contract/own-sources.ts'
import { readEntry } from '../catalog/read-entry.ts'
import { readRegistry } from '../catalog/registry.ts'
import { silentLogger } from '../lib/logger.ts'
import { chatServers } from './app-servers.ts'

function policyOf(approvals: Record<string, Record<string, string>>) {
  const mcpServers = Object.fromEntries(
    Object.entries(approvals).map(([name, approval]) => [name, { command: 'x', approval }])
  )
  const registry = readRegistry(JSON.stringify({ mcpServers }), 'mcp.json')
  const core = () => Promise.reject(new Error('not needed'))
  return chatServers({ registry: () => registry, core, loaded: () => undefined }, silentLogger).policy
}

describe("an entry's rules in the chat", () => {
  // Checked: if they are matched as one text, the other server's tools run without approval.
  it('apply to its own tools only, whatever is in its name', () => {
    const policy = policyOf({
      acme: { '*': 'allow' },
      'acme/db': {},
      '*': { '*': 'allow', 'drop*': 'deny' },
      other: {}
    })
    expect(policy('acme', 'list')).toBe('allow')
    expect(policy('acme/db', 'drop')).toBe('ask')
    expect(policy('other', 'send')).toBe('ask')
    expect(policy('*', 'drop_all')).toBe('deny')
    expect(policy('*', 'look')).toBe('allow')
  })

  it('do not apply to the sandbox, even if the entry has its name', () => {
    expect(policyOf({ workspace: { '*': 'allow' } })('workspace', 'execute_command')).toBe('ask')
  })
})

it.each([WORKSPACE, ROUTER, PROGRAMS])('the chat neither lists a server named %s nor follows its rules', (name) => {
  const servers = new Map([[name, { ...readEntry('other', { command: 'x', approval: { '*': 'allow' } }, 1), name }]])
  const core = () => Promise.reject(new Error('not needed'))
  const chat = chatServers({ registry: () => ({ servers, problems: [] }), core, loaded: () => undefined }, silentLogger)
  expect(chat.sources()).toEqual([])
  expect(chat.policy(name, 'any')).toBe('ask')
})
