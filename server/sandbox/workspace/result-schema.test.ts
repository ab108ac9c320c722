import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import {
  changesResult,
  fetchResult,
  isWorkspacePath,
  limitsResult,
  restoreResult,
  toolList,
  toolResult
} from './result-schema.ts'
import { readOutputChunk } from './workspace-connection.ts'

const check = (schema: z.ZodType, value: unknown) => schema['~standard'].validate(value)
const file = { path: 'a/b.txt', type: 'file', mode: 0o644, mtimeMs: 1.5, size: 3, hash: 'a'.repeat(64), data: 'AAAA' }
const changes = {
  seq: 1,
  put: [file],
  deleted: ['c'],
  skipped: [{ path: 'd', reason: 'socket' }],
  more: false
}

describe('result schemas', () => {
  it('never throw, whatever the sandbox answers', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        for (const schema of [toolResult, toolList, limitsResult, changesResult, fetchResult, restoreResult]) {
          check(schema, value)
        }
      })
    )
  })

  it('keep what they know and nothing else', () => {
    const content = [{ type: 'text', text: 'x' }]
    expect(check(toolResult, { content, isError: true, structuredContent: { a: 1 }, _meta: {}, extra: 1 })).toEqual({
      value: { content, isError: true, structuredContent: { a: 1 } }
    })
    expect(check(changesResult, { ...changes, put: [{ ...file, extra: 1 }], extra: 1 })).toEqual({ value: changes })
    expect(check(toolList, { tools: [{ name: 't', inputSchema: {}, outputSchema: {} }], nextCursor: 'x' })).toEqual({
      value: [{ name: 't', inputSchema: {} }]
    })
  })

  it.each([
    {},
    { content: 'x' },
    { content: [null] },
    { content: [{ text: 'x' }] },
    { content: [], isError: 'yes' },
    { content: [], structuredContent: [] },
    { content: Array(1001).fill({ type: 'text', text: '' }) }
  ])('refuse a tool result like %j', (value) => {
    expect(check(toolResult, value)).toHaveProperty('issues')
  })

  it.each([
    { path: '../x' },
    { path: '/etc/passwd' },
    { path: 'a//b' },
    { type: 'socket' },
    { mode: 0o10000 },
    { mode: 1.5 },
    { mtimeMs: Number.NaN },
    { size: -1 },
    { size: 2 ** 60 },
    { hash: '../../x' },
    { hash: 'A'.repeat(64) },
    { data: 5 }
  ])('refuse an entry with %j', (change) => {
    expect(check(changesResult, { ...changes, put: [{ ...file, ...change }] })).toHaveProperty('issues')
  })
})

describe('isWorkspacePath', () => {
  const encoded = (path: string) => `\0b64:${Buffer.from(path, 'latin1').toString('base64')}`

  it.each(['a', 'a/b', '...', 'ä b', '-rf', encoded('a/\xff')])('takes %j', (path) => {
    expect(isWorkspacePath(path)).toBe(true)
  })

  it.each([
    '',
    '/',
    '.',
    '..',
    'a/',
    '/a',
    'a/../b',
    'a\0',
    '\0b64:',
    '\0b64:%%',
    encoded('../\xff'),
    encoded('/x'),
    'x'.repeat(9000)
  ])('refuses %j', (path) => {
    expect(isWorkspacePath(path)).toBe(false)
  })
})

describe('readOutputChunk', () => {
  it('reads live output and nothing else', () => {
    expect(readOutputChunk('{"stream":"stderr","text":"x","more":1}')).toEqual({ stream: 'stderr', text: 'x' })
    for (const message of [
      undefined,
      5,
      '',
      '{',
      'null',
      '[]',
      '{"stream":"stdin","text":"x"}',
      '{"stream":"stdout"}'
    ]) {
      expect(readOutputChunk(message)).toBeNull()
    }
    expect(readOutputChunk(JSON.stringify({ stream: 'stdout', text: 'x'.repeat(2 ** 21) }))).toBeNull()
  })
})
