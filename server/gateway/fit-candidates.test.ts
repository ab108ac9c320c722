import { describe, expect, it } from 'vitest'
import { type RecordedTool, readLines } from '../../bench/sentences/eight-servers.ts'
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
