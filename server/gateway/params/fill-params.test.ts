import { describe, expect, it } from 'vitest'
import { checkParams } from './check-params.ts'
import { fillParams } from './fill-params.ts'

const schema = (properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required
})
const text = { type: 'string' }
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
    expect(fillParams(input, {}, request, true)).toEqual(expected)
  })

  it.each([
    ['two numbers for two places', schema({ a: number, b: number }), 'add 2 and 40'],
    ['two texts for one place', schema({ message: text }), 'say "a" or "b"'],
    ['one text for two places', schema({ from: text, to: text }), 'translate "hello"'],
    ['a number inside a word', schema({ count: number }), 'use utf8 of v2.1.3 and abc-7'],
    ['an apostrophe', schema({ message: text }), "it's what it's"],
    ['optional places', schema({ count: number }, []), 'give me 5'],
    ['the exception', schema({ city: text }), 'forecast for any city but "Paris"'],
    ['two exceptions', schema({ id: text }), 'any order other than "A-77" and id="B-2"'],
    ['what it must not take', schema({ path: text }), 'do not read path=/etc/hosts']
  ])('does not guess %s', (_what, input, request) => {
    expect(fillParams(input, {}, request, true)).toEqual({})
  })

  it('never overrides what was given', () => {
    expect(fillParams(schema({ message: text }), { message: 'mine' }, 'message="other"', true)).toEqual({
      message: 'mine'
    })
  })

  it('fills a write only when every required parameter is named', () => {
    const input = schema({ path: text, content: text })
    expect(fillParams(input, {}, 'write "x" to /tmp/a', false)).toEqual({})
    expect(fillParams(input, {}, 'write path=/tmp/a "x"', false)).toEqual({})
    expect(fillParams(input, {}, 'write path=/tmp/a content="x"', false)).toEqual({ path: '/tmp/a', content: 'x' })
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
