import { expect, it } from 'vitest'
import { cpuMs } from '../../tests/support/cpu-ms.ts'
import type { StoredTool } from '../catalog/stored-tools.ts'
import { typeSignature } from './type-signature.ts'

const tool = (more: Partial<StoredTool>): StoredTool => ({
  ...{ name: 'find', description: 'Finds rows.', inputSchema: { type: 'object' }, hash: '' },
  ...more
})

it('writes arguments and results as types', () => {
  const inputSchema = {
    type: 'object',
    properties: {
      query: { type: 'string', description: 'What to find' },
      kind: { enum: ['a', 'b'] },
      ids: { type: 'array', items: { type: ['integer', 'null'] } },
      where: { type: 'object', properties: { 'x-y': { type: 'boolean' } }, required: ['x-y'] }
    },
    required: ['query']
  }
  const outputSchema = { type: 'object', properties: { rows: { type: 'array', items: { type: 'object' } } } }
  expect(typeSignature('db', tool({ inputSchema, outputSchema }))).toBe(
    '// Finds rows.\ntools.db.find(args: { /* What to find */ query: string; kind?: "a" | "b"; ids?: (number | null)[]; where?: { "x-y": boolean } }): Promise<{ rows?: Record<string, unknown>[] }>'
  )
})

it('does not let a hostile description or name out of its comment or quotes', () => {
  const inputSchema = { type: 'object', properties: { a: { type: 'string', description: '*/ evil() /*\nnext' } } }
  const signature = typeSignature('my-db', tool({ name: 'x"]()', description: 'one\ntools.evil()', inputSchema }))
  expect(signature.split('\n')).toHaveLength(2)
  expect(signature).toContain('tools["my-db"]["x\\"]()"](args?: { /* * / evil() /* next */ a?: string })')
})

it('is bounded', () => {
  let inputSchema: Record<string, unknown> = { enum: Array.from({ length: 999 }, (_, n) => n) }
  for (let depth = 0; depth < 50; depth++)
    inputSchema = { type: 'object', properties: { a: inputSchema, b: inputSchema } }
  expect(typeSignature('db', tool({ inputSchema })).length).toBeLessThan(4100)
})

// Checked: if the types of a schema are written one by one, it does not end within a minute.
it('is written quickly, however often a schema names its types', async () => {
  let inputSchema: Record<string, unknown> = { type: 'string' }
  const type = Array.from({ length: 200 }, (_, n) => (n % 2 ? 'object' : `t${n}`))
  for (let depth = 0; depth < 5; depth++) inputSchema = { type, properties: { a: inputSchema, b: inputSchema } }
  let signature = ''
  expect(await cpuMs(() => (signature = typeSignature('db', tool({ inputSchema }))))).toBeLessThan(500)
  expect(signature.length).toBeLessThan(4100)
})

// Checked: if a type is looked up as it is, all of these but the nested list throw.
it.each([{ toString: 0 }, 'constructor', '__proto__', [['string']], [{ toString: 0 }]])('knows no type %j', (type) => {
  const inputSchema = { type: 'object', properties: { a: { type: 'array', items: { type } } } }
  expect(typeSignature('db', tool({ inputSchema }))).toContain('{ a?: unknown[] }')
})
