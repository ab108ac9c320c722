import { describe, expect, it } from 'vitest'
import { ROUTER, WORKSPACE } from '../../contract/own-sources.ts'
import { offerTools } from '../calls/offered-tool.ts'
import { ROUTER_TOOLS } from '../calls/router-tools.ts'
import { meantCall } from './meant-call.ts'

const taken = new Set<string>()
const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })
const sandbox = offerTools(WORKSPACE, [tool('read_file')], taken)
const ours = offerTools(ROUTER, ROUTER_TOOLS, taken)
const hidden = [
  ...offerTools('tracker', [tool('create_issue'), tool('list')], taken),
  ...offerTools('mail', [tool('list')], taken)
]
const known = [...sandbox, ...ours, ...hidden]

function meant(name: string, args: unknown, offered = [...sandbox, ...ours]) {
  const text = typeof args === 'string' ? args : JSON.stringify(args)
  const found = meantCall({ type: 'tool-call', callId: 'c', name, args: text }, offered, known)
  return typeof found === 'string' ? found : [found.tool.server, found.tool.name, found.args]
}

describe('the call that a model means', () => {
  it('is the one that it names', () => {
    expect(meant('read_file', { path: 'a' })).toEqual([WORKSPACE, 'read_file', { path: 'a' }])
    expect(meant('find_tool', { query: 'x' })).toEqual([ROUTER, 'find_tool', { query: 'x' }])
  })

  it('is the inner one if it calls execute', () => {
    const params = { title: 'Broken' }
    const inner = ['tracker', 'create_issue', params]
    expect(meant('execute', { server: 'tracker', tool: 'create_issue', params })).toEqual(inner)
    expect(meant('execute', { tool: 'create_issue', params })).toEqual(inner)
    expect(meant('execute', { tool: 'tracker__create_issue', params })).toEqual(inner)
    expect(meant('execute', { server: 'mail', tool: 'list' })).toEqual(['mail', 'list', {}])
  })

  it('may be a known tool that it was not offered, but not one of ours', () => {
    expect(meant('mail__list', {})).toEqual(['mail', 'list', {}])
    expect(meant('execute', { server: 'mail', tool: 'list' }, sandbox)).toBe('There is no tool named "execute".')
  })

  it.each([
    [{ server: 'tracker', tool: 'create_isue' }, /no tool "create_isue" on the server "tracker".*"create_issue"/],
    [{ tool: 'list' }, /Several servers have a tool "list": tracker, mail/],
    [{ server: 'mail', tool: 'list', params: 'x' }, /"params" must be an object/],
    [{ server: ROUTER, tool: 'execute', params: {} }, /no tool "execute"/],
    [{ params: {} }, /Give "server", "tool" and "params"/],
    ['[1]', /must be a JSON object/]
  ])('is refused with a reason: %j', (args, reason) => {
    expect(meant('execute', args)).toMatch(reason)
  })
})
