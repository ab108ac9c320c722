import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const rows = read('docs/SECURITY.md')
  .split('\n## Threats\n')[1]
  ?.split('\n')
  .filter((line) => /^\| (?!attack|---)/.test(line))
  .map((line) => line.split(/(?<!\\) ?\| ?/).slice(1, -1))

it('has many rows, each with an attack, a defence, a test, and how that was seen to fail', () => {
  expect(rows?.length).toBeGreaterThan(60)
  expect(rows?.filter((cells) => cells.length !== 4 || cells.some((cell) => cell.trim() === ''))).toEqual([])
})

it.each(rows ?? [])('%s', (_attack, defence = '', test = '') => {
  const files = [...defence.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
  const [, file = '', title = ''] = /^`([^`]+)`: (.+)$/.exec(test) ?? []
  expect(read(file)).toContain(title)
  // The test itself says so too.
  const before = read(file).slice(0, read(file).indexOf(title)).split('\n').slice(-30).join('\n')
  expect(before).toMatch(/\/\/ Checked/)
})
