import { expect, it } from 'vitest'
import type { GatewayServices } from '../gateway-services.ts'
import { whyConfirm, whyNotFill } from './confirm-route.ts'

const inputSchema = { type: 'object', properties: { query: { type: 'string' } } }
const tool = {
  ...{ name: 'search_notes', description: 'Search the notes.', inputSchema, hash: 'x' },
  annotations: { readOnlyHint: true }
}
const core = { index: { entry: () => undefined, tools: () => [tool] } } as unknown as GatewayServices
const why = (request: string, more: object) =>
  whyConfirm(core, {
    ...{
      server: 'notes',
      tool,
      request,
      confidence: 0.9,
      isServerNamed: false,
      isRead: true,
      params: {},
      problems: []
    },
    ...more
  })

it('sends values of the sentence to a server that nobody named only if the confidence is high enough', () => {
  const filled = { params: { query: 'Bob' }, filledBy: { query: 'rules' } }
  const request = 'search the notes for "Bob"'
  expect(why(request, { ...filled, confidence: 0.332 })).toContain('0.332')
  expect(why(request, { ...filled, confidence: 0.6 })).toBeUndefined()
  expect(why(request, { ...filled, confidence: 0.332, isServerNamed: true })).toBeUndefined()
  // The caller gave it, but named no server: it may be meant for another one.
  expect(why(request, { params: { query: 'Bob' }, confidence: 0.332 })).toContain('0.332')
})

it('needs less of one tool if several tools of a certain server share the confidence', () => {
  const filled = { params: { query: 'Bob' }, filledBy: { query: 'rules' }, confidence: 0.5 }
  const request = 'search the notes for "Bob"'
  expect(why(request, { ...filled, serverConfidence: 0.7 })).toBeUndefined()
  expect(why(request, { ...filled, serverConfidence: 0.55 })).toContain('0.5')
  expect(why(request, { ...filled, confidence: 0.3, serverConfidence: 0.9 })).toContain('0.3')
})

it('runs nothing if a value of the sentence is unused', () => {
  const request = 'search the notes of pod nginx-123 for 2 seconds, in /data/a.txt, for "Bob"'
  expect(why(request, {})).toBe(
    'These values of the request are in none of "params": "Bob", "/data/a.txt", 2, "nginx-123".'
  )
  const properties = { query: {}, deep: { items: { properties: { path: {}, seconds: {} } } }, pod: {} }
  const params = { query: 'Bob', deep: [{ path: '/data/a.txt', seconds: '2' }], pod: 'nginx-123' }
  expect(why(request, { params, tool: { ...tool, inputSchema: { properties } } })).toBeUndefined()
  expect(why('search the notes', {})).toBeUndefined()
})

it('sends nothing to a found tool that has no such parameter', () => {
  const request = 'search the notes'
  expect(why(request, { params: { password: 'x' } })).toBe('This tool has no such parameters: "password".')
  // The schema allows any name, which says nothing about this one.
  const open = { ...tool, inputSchema: { ...inputSchema, additionalProperties: true } }
  expect(why(request, { params: { password: 'x' }, tool: open })).toContain('"password"')
  const nested = { ...tool, inputSchema: { properties: { filter: { properties: { by: {} } } } } }
  expect(why(request, { params: { filter: { by: 1, secret: 2 } }, tool: nested })).toContain('"secret"')
  expect(why(request, { params: { constructor: 1 } })).toContain('"constructor"')
  expect(why(request, { params: { query: 'x' } })).toBeUndefined()
})

it('takes names, numbers in words and times for values too', () => {
  const unused = [
    'search the notes in Berlin',
    'search the notes of Acme',
    'search zero notes',
    'search the notes tomorrow',
    'search the notes every hour',
    'search the notes at noon',
    'search the notes by friday',
    'search the notes this evening',
    'search the notes older than a year'
  ]
  expect(unused.filter((request) => why(request, {}) === undefined)).toEqual([])
  const used = ['Search the notes', 'search the Notes, please', 'I need to search the notes. Show them in JSON']
  expect(used.filter((request) => why(request, {}) !== undefined)).toEqual([])
  expect(why('search the notes for Berlin', { params: { query: 'Berlin' } })).toBeUndefined()
  expect(why('search the notes for two', { params: { query: '2' } })).toBeUndefined()
})

// Checked: if a named reader is not looked at, the search runs without the folder and the number.
it('runs a named tool that reads only if it gets every value of the sentence, or the caller gave the parameters', () => {
  const request = 'search the notes in /data/a.txt for "Bob", 20 of them'
  const found = { server: 'notes', tool, request, isRead: true, problems: [], params: { query: 'Bob' } }
  const dropped = 'These values of the request are in none of "params": "/data/a.txt", 20.'
  expect(whyNotFill({ ...found, filledBy: { query: 'rules' } }, {})).toBe(dropped)
  expect(whyNotFill({ ...found, params: {} }, undefined)).toContain('"Bob", "/data/a.txt", 20')
  expect(whyNotFill(found, { query: 'Bob' })).toBeUndefined()
  const plain = { ...found, request: 'search the notes for "Bob"', filledBy: { query: 'rules' } as const }
  expect(whyNotFill(plain, undefined)).toBeUndefined()
})

const listed = (name: string, description: string) => ({
  ...{ server: 'demo', tool: { ...tool, name, description, inputSchema: { type: 'object', properties: {} } } }
})
const env = listed('get-env', 'Returns all environment variables, helpful for debugging MCP server configuration')
const graph = listed('read_graph', 'Read the entire knowledge graph')
const pages = listed('list_pages', 'Get a list of pages open in the browser.')
const folders = listed(
  'list_allowed_directories',
  'Returns the list of directories that this server is allowed to access. Subdirectories within these allowed directories are also accessible.'
)
const time = listed('get_current_time', 'Get the current time')

// Checked: without the check of the words, each of them runs.
it.each([
  ['help', env],
  ['can you help?', env],
  ['server', env],
  ['configuration', env],
  ['what is the environment of a whale', env],
  ['entire', graph],
  ['I hate the knowledge graph', graph],
  ['list', pages],
  ['tell me a joke about directories that are allowed', folders]
])('does not run a tool for "%s", which shares a word with it', (request, found) => {
  expect(why(request, found)).toBeDefined()
  expect(why(request, { ...found, isServerNamed: true })).toBeDefined()
})

// Checked: if a default counts as a value of the sentence, each of them runs.
it.each(['can you help?', 'what is the environment of a whale'])(
  'does not take a default for a value in "%s"',
  (request) => {
    const tool = {
      ...env.tool,
      inputSchema: { type: 'object', properties: { format: { type: 'string', default: 'text' } } }
    }
    const found = { ...env, tool, params: { format: 'text' }, filledBy: { format: 'default' } }
    expect(why(request, found)).toBeDefined()
  }
)

it.each([
  ['print the environment variables of the server', env],
  ['show the whole knowledge graph', graph],
  ['I need the knowledge graph', graph],
  ['list the pages', pages],
  ['which pages are open?', pages],
  ['which folders may I access?', folders],
  ['what time is it?', time]
])('runs a tool for "%s"', (request, found) => expect(why(request, found)).toBeUndefined())

it('needs no shared word where a model has compared meanings', () => {
  const meaning = { ...core, enrichment: {} } as unknown as GatewayServices
  const found = {
    ...folders,
    request: 'what places do you see?',
    isServerNamed: false,
    isRead: true,
    params: {},
    problems: []
  }
  expect(whyConfirm(core, { ...found, confidence: 0.9 })).toBeDefined()
  expect(whyConfirm(meaning, { ...found, confidence: 0.9 })).toBeUndefined()
  expect(whyConfirm(meaning, { ...found, confidence: 0.5 })).toBeDefined()
})
