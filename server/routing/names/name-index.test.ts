import { describe, expect, it } from 'vitest'
import { createNameIndex } from './name-index.ts'

function index() {
  const names = createNameIndex()
  for (const server of ['github', 'everything', 'sequential-thinking', 'search', 'Google Maps']) names.addServer(server)
  const tools = ['get-sum', 'search', 'read_text_file', 'listIssues', 'echo', 'add-on']
  tools.forEach((name, slot) => {
    names.addTool(name, slot)
  })
  return names
}
const slotOf = { getSum: 0, search: 1, readTextFile: 2, listIssues: 3, echo: 4, addOn: 5 }

describe('tools that are certainly named', () => {
  it.each([
    ['use get-sum to add 2 and 3', slotOf.getSum],
    ['use get sum to add 2 and 3', slotOf.getSum],
    ['use get_sum to add 2 and 3', slotOf.getSum],
    ['please call GetSum with 2 and 3', slotOf.getSum],
    ['add 2 and 3 (get_sum)', slotOf.getSum],
    ['read_text_file of notes.txt', slotOf.readTextFile],
    ['read-text-file', slotOf.readTextFile],
    ['run the "echo" tool', slotOf.echo],
    ['use search to look for cats', slotOf.search],
    ['the search tool, please: use the search tool', slotOf.search],
    ['echo', slotOf.echo],
    ['github/list_issues', slotOf.listIssues]
  ])('%s', (request, slot) => {
    expect([...index().named(request).tools]).toContain(slot)
  })

  it.each([
    'search for cats',
    'can you use the search results',
    'I want an add-on for my phone',
    "don't use get-sum for this",
    'do it without using get_sum',
    ''
  ])('not in: %s', (request) => {
    expect([...index().named(request).tools]).toEqual([])
  })
})

describe('servers that are certainly named', () => {
  it.each([
    ['with github: list issues', 'github'],
    ['github: list issues', 'github'],
    ['list the issues on GitHub', 'github'],
    ['use the sequential thinking server', 'sequential-thinking'],
    ['use sequential_thinking for this', 'sequential-thinking'],
    ['find a cafe with Google Maps', 'Google Maps']
  ])('%s', (request, server) => {
    expect([...index().named(request).servers]).toEqual([server])
  })

  it.each(['delete everything in the folder', 'do a search in my files', 'show my issues, but not from github'])(
    'not in: %s',
    (request) => {
      expect([...index().named(request).servers]).toEqual([])
    }
  )

  it('treats a name mentioned in passing as a hint only', () => {
    const named = index().named('what does the GitHub logo look like')
    expect([...named.servers]).toEqual([])
    expect([...named.maybeServers]).toEqual(['github'])
  })
})

it('forgets removed names', () => {
  const names = index()
  names.removeTool('get-sum', slotOf.getSum)
  names.removeServer('github')
  const named = names.named('use get-sum with github: go')
  expect([...named.tools]).toEqual([])
  expect([...named.servers]).toEqual([])
})

it('prefers the longest name', () => {
  const names = createNameIndex()
  names.addServer('git')
  names.addTool('git_status', 0)
  names.addTool('status', 1)
  const named = names.named('use git_status now')
  expect([...named.tools]).toEqual([0])
  expect([...named.servers]).toEqual([])
})
