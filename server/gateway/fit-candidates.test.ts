import { describe, expect, it } from 'vitest'
import { type RecordedTool, readLines } from '../../bench/sentences/eight-servers.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { createRouter } from '../routing/router.ts'
import { parameterText } from '../tools/parameter-text.ts'
import { fitCandidates } from './execute/fit-candidates.ts'
import type { GatewayServices } from './gateway-services.ts'

/** The tools of eight real servers. */
const tools = readLines<RecordedTool>('tools')
const router = createRouter()
for (const [server, own] of Map.groupBy(tools, (tool) => tool.server)) {
  const routable = own.map(({ name, description, inputSchema }) => ({
    ...{ server, name, description, params: parameterText(inputSchema) }
  }))
  router.setServer(server, routable)
}
const find = (server: string, name: string) => tools.find((tool) => tool.server === server && tool.name === name)
const core = { index: { tool: find } } as unknown as GatewayServices
const best = (request: string) => fitCandidates(core, request, {}, router.find(request, { limit: 10 }).matches)[0]?.tool

// Each was seen failing before.
describe('the candidates of a sentence, weighed', () => {
  it.each([
    ['who has reviewed pull request 3 of acme/web?', 'get_pull_request_reviews'],
    ['the reviews on pull request 21 in acme/web', 'get_pull_request_reviews']
  ])('leave out what changes something if nothing is ordered: %s', (request, tool) => {
    expect(best(request)).toBe(tool)
  })

  it.each([
    ['what is 31 plus 11?', 'get-sum'],
    ['add up 4 and 15', 'get-sum'],
    ['8 + 90', 'get-sum']
  ])('know a sum by its sign: %s', (request, tool) => {
    expect(best(request)).toBe(tool)
  })

  it('take a text for the tool that searches what is named', () => {
    expect(best('search the page for "Terms of use"')).toBe('browser_find')
  })

  it.each([
    ['how large is /srv/dump.tar?', 'get_file_info'],
    ['what is the size of the file /srv/logo.png?', 'get_file_info']
  ])('leave out tools for folders if the path is a file: %s', (request, tool) => {
    expect(best(request)).toBe(tool)
  })
})

const tool = (name: string, description: string): StoredTool => ({
  ...{ name, description, hash: name, annotations: { readOnlyHint: true } },
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }
})

function bestOf(tools: StoredTool[], server = (_: string) => 'files') {
  const index = { tool: (_: string, name: string) => tools.find((each) => each.name === name) }
  const matches = tools.map(({ name, description }, at) => ({
    ...{ server: server(name), tool: name, description },
    confidence: at === 0 ? 0.8 : 0.1
  }))
  return fitCandidates({ index } as unknown as GatewayServices, 'read /etc/hosts', {}, matches)[0]?.tool
}

const read = tool('read_file', 'Reads a file as text. DEPRECATED: Use read_text_file instead.')
const readText = tool('read_text_file', 'Reads a file as text.')

// Checked: without the rule, the deprecated tool is first.
it('prefers the tool that a deprecated one names in its place, on the same server only', () => {
  expect(bestOf([read, readText])).toBe('read_text_file')
  expect(bestOf([read, readText], (name) => name)).toBe('read_file')
  expect(bestOf([read, tool('read_texts', 'Reads a file as text.')])).toBe('read_file')
  const other = tool('read_file', 'Reads a file as text. Its sibling is read_text_file.')
  expect(bestOf([other, readText])).toBe('read_file')
})

it('deprecated tools that name each other keep what they have together', () => {
  const one = tool('read_one', 'Reads. Deprecated, use read_two.')
  const two = tool('read_two', 'Reads. Deprecated, use read_one.')
  expect(bestOf([one, two, tool('stat', 'Reads the size.')])).toMatch(/^read_/)
})
