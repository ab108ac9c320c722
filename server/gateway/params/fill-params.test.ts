import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { type LabelledRequest, type RecordedTool, readLines } from '../../../bench/sentences/eight-servers.ts'
import { checkParams } from './check-params.ts'
import { fillNamed, fillParams } from './fill-params.ts'
import { isSaid } from './resolve-params.ts'

const schema = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required
})
const text = { type: 'string' }
const fill = (inputSchema: Record<string, unknown>, given: Record<string, unknown>, request: string, name = 'tool') =>
  fillParams({ name, description: '', inputSchema }, given, request).params
const number = { type: 'number' }

describe('fillParams', () => {
  it.each([
    ['one quoted text', schema({ message: text }), 'echo "hello there" please', { message: 'hello there' }],
    ['an address', schema({ url: text }), 'open https://example.test/a?b=1.', { url: 'https://example.test/a?b=1' }],
    [
      'a mail address',
      schema({ email: text, count: number }),
      'send 3 to a.b@example.test',
      { email: 'a.b@example.test', count: 3 }
    ],
    ['a path', schema({ path: text }), 'read /etc/hosts, please', { path: '/etc/hosts' }],
    ['named values', schema({ a: number, b: number }), 'sum with a=2 and b: 40', { a: 2, b: 40 }],
    ['a negative number', schema({ level: number }), 'set it to -3.5', { level: -3.5 }],
    ['a quoted "but"', schema({ message: text }), 'say "no, but yes"', { message: 'no, but yes' }]
  ])('finds %s', (_what, input, request, expected) => {
    expect(fill(input, {}, request)).toEqual(expected)
  })

  it.each([
    ['three numbers for two places', schema({ a: number, b: number }), 'add 2, 3 and 40'],
    ['one number for two places', schema({ a: number, b: number }), 'add 2'],
    ['an optional number that nobody speaks of', schema({ limit: number }, []), 'the weather in 5 cities'],
    ['a pronoun for a text', schema({ query: text }), 'search for it'],
    ['two orders for a text', schema({ query: text }), 'search for Alice and delete her'],
    ['a choice that sorts', schema({ sort: { enum: ['created', 'comments'] } }, []), 'list issues with comments'],
    ['two choices for one place', schema({ level: { enum: ['error', 'info'] } }), 'show errors and info'],
    ['two texts for one place', schema({ message: text }), 'say "a" or "b"'],
    ['one text for two places', schema({ from: text, to: text }), 'translate "hello"'],
    ['a number inside a word', schema({ count: number }), 'use utf8 of v2.1.3 and abc-7'],
    ['an apostrophe', schema({ message: text }), "it's what it's"],
    ['optional places', schema({ count: number }, []), 'give me 5'],
    ['the exception', schema({ city: text }), 'forecast for any city but "Paris"'],
    ['two exceptions', schema({ id: text }), 'any order other than "A-77" and id="B-2"'],
    ['what it must not take', schema({ path: text }), 'do not read path=/etc/hosts']
  ])('does not guess %s', (_what, input, request) => {
    expect(fill(input, {}, request)).toEqual({})
  })

  it('never overrides what was given', () => {
    expect(fill(schema({ message: text }), { message: 'mine' }, 'message="other"')).toEqual({ message: 'mine' })
  })

  it('takes only values that are named, if that is all that is wanted', () => {
    const input = schema({ path: text, content: text })
    expect(fillNamed(input, {}, 'write "x" to /tmp/a')).toBeUndefined()
    expect(fillNamed(input, {}, 'write path=/tmp/a "x"')).toBeUndefined()
    expect(fillNamed(input, {}, 'write path=/tmp/a content="x"')).toEqual({ path: '/tmp/a', content: 'x' })
  })

  it('says which values the sentence does not name', () => {
    const tool = { name: 'write_file', description: '', inputSchema: schema({ path: text, content: text }) }
    expect(fillParams(tool, {}, 'write "x", path=/tmp/a')).toEqual({
      params: { path: '/tmp/a', content: 'x' },
      matched: ['content'],
      unclear: []
    })
  })

  const state = { enum: ['open', 'closed'], type: 'string' }
  it.each([
    ['what is left of the sentence', 'echo', schema({ message: text }), 'echo hello world', { message: 'hello world' }],
    ['what comes after "for"', 'search_notes', schema({ query: text }), 'search notes for tax', { query: 'tax' }],
    ['numbers in their order', 'get_sum', schema({ a: number, b: number }), 'get the sum of 2 and 3', { a: 2, b: 3 }],
    [
      'both sides of 3x4',
      'resize',
      schema({ width: number, height: number }),
      'resize to 3x4',
      { width: 3, height: 4 }
    ],
    [
      'a repository',
      'fork',
      schema({ owner: text, repo: text }),
      'fork torvalds/linux',
      { owner: 'torvalds', repo: 'linux' }
    ],
    [
      'the address of a repository',
      'fork',
      schema({ owner: text, repo: text }),
      'fork https://github.com/torvalds/linux',
      { owner: 'torvalds', repo: 'linux' }
    ],
    [
      'X to Y',
      'move_file',
      schema({ source: text, destination: text }),
      'move to /tmp/b the file /tmp/a',
      { source: '/tmp/a', destination: '/tmp/b' }
    ],
    ['a choice beside its noun', 'list_issues', schema({ state }, []), 'list the open issues', { state: 'open' }],
    [
      'all paths',
      'read',
      schema({ paths: { type: 'array', items: text } }),
      'read /a and b.txt',
      { paths: ['/a', 'b.txt'] }
    ],
    ['a date', 'list', schema({ since: text }, []), 'list all since 2026-01-15', { since: '2026-01-15' }],
    ['a switch', 'shoot', schema({ fullPage: { type: 'boolean' } }, []), 'shoot the full page', { fullPage: true }],
    [
      'the number that the words speak of',
      'list',
      schema({ page: number, perPage: number }, []),
      'list page 2',
      { page: 2 }
    ]
  ])('finds %s', (_what, name, input, request, expected) => {
    expect(fill(input, {}, request, name)).toEqual(expected)
  })

  it('finds the arguments of at least half of the recorded requests, and invents none', () => {
    const tools = new Map(readLines<RecordedTool>('tools').map((tool) => [`${tool.server}/${tool.name}`, tool]))
    const requests = readLines<LabelledRequest>('requests')
    let exact = 0
    const wrong: unknown[] = []
    for (const { request, server, tool: name, params: right } of requests) {
      const tool = tools.get(`${server}/${name}`)
      if (!tool) throw new Error(`No tool ${server}/${name}`)
      const { params } = fillParams(tool, {}, request)
      if (isDeepStrictEqual(params, right)) exact += 1
      for (const [key, value] of Object.entries(params)) {
        const isNamed = value === true || isDeepStrictEqual(value, right[key])
        if (!isDeepStrictEqual(value, right[key]) || !(isNamed || isSaid(value, request)))
          wrong.push({ request, key, value })
      }
    }
    expect(requests).toHaveLength(150)
    expect(wrong).toEqual([])
    expect(exact).toBeGreaterThanOrEqual(125)
  })

  it('ends soon, whatever the sentence is', () => {
    const input = schema({
      query: text,
      path: text,
      owner: text,
      repo: text,
      count: number,
      list: { type: 'array', items: text }
    })
    for (const part of ['a.', 'a/', '/a', '"', "'a", 'for ', '1x', '-1', 'a@', '*', ':', 'query ', 'http://'])
      fill(input, {}, part.repeat(4000 / part.length))
  })
})

describe('checkParams', () => {
  it.each([
    [{ a: 1 }, ['b is missing']],
    [{ a: '1', b: 'x' }, ['a must be number']],
    [{ a: 1, b: 'z' }, ['b must be one of ["x","y"]']],
    [{ a: 1, b: 'x', c: 1 }, ['c is not a parameter of this tool']],
    [{ a: 11, b: 'x' }, ['a must be at most 10']],
    [{ a: 1, b: 'x', deep: [{}] }, ['deep[0].id is missing']],
    [{ a: 1, b: 'x', deep: [{ id: 'i' }] }, []]
  ])('%j: %j', (params, expected) => {
    const input = {
      type: 'object',
      properties: {
        a: { type: 'number', maximum: 10 },
        b: { type: 'string', enum: ['x', 'y'] },
        deep: { type: 'array', items: { type: 'object', properties: { id: text }, required: ['id'] } }
      },
      required: ['a', 'b'],
      additionalProperties: false
    }
    expect(checkParams(input, params).map(({ path, reason }) => `${path} ${reason}`)).toEqual(expected)
  })
})
