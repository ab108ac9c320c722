import { expect, it } from 'vitest'
import { readProgram } from './read-program.ts'

it.each([
  ['1 + 1', 2],
  ['const a: number = 1; a + 1', 2],
  ['const a = [1,\n 2]\na.map(\n  (x) => x * 2\n)', [2, 4]],
  ['let x = 1\n+ 2\nx', 3],
  ['let x = 1\nx = 5\n  + 2', 7],
  ['if (true) {\n  5\n}', undefined],
  ['later()\nfunction later() { return 1 }', undefined],
  ['return "early"\n2', 'early'],
  ['const text = `\nx`\n// the end\ntext // it', '\nx'],
  ['({ a: 1 })', { a: 1 }],
  ['', undefined]
])('%j has the value %j', async (code, value) => {
  const result: unknown = await readProgram(code).runInNewContext()
  expect(JSON.stringify(result)).toEqual(JSON.stringify(value))
})

it.each(['import fs from "node:fs"', 'export const a = 1', 'enum A { B }'])('refuses %j', (code) => {
  expect(() => readProgram(code)).toThrow()
})
