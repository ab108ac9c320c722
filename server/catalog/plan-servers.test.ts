import { expect, it } from 'vitest'
import { planServers } from './plan-servers.ts'

it('warns of the gateway itself, which is pasted along with what it replaced', () => {
  const text = JSON.stringify({
    mcpServers: { me: { command: '/opt/bin/mcp-orchestrator', args: ['gateway'] }, files: { command: 'npx' } }
  })
  expect(planServers(text, () => false).servers.map(({ name, warnings }) => [name, warnings])).toEqual([
    ['me', ['This is the gateway itself: it would become a server of its own.']],
    ['files', []]
  ])
})
