import { expect, it } from 'vitest'
import { maskedTarget } from './describe-target.ts'
import { literalSecrets } from './literal-secrets.ts'
import { readEntry } from './read-entry.ts'

it.each([
  [{ command: 'x', env: { DATABASE_URL: 'mysql://u:pa55word@h/db', MODE: 'fast' } }, ['pa55word']],
  [{ command: 'x', args: ['--db', 'postgres://a:p%40ss@h/d'] }, ['p%40ss', 'p@ss']],
  [{ command: 'x', args: ['--api-key=abcd1234', '--api-key', 'efgh5678'] }, ['abcd1234', 'efgh5678']],
  [{ command: 'x', args: ['Server=h;Password=hunter2;'] }, ['hunter2']],
  [{ command: 'docker', args: ['-e', 'API_KEY=abcd1234', '--header', 'X-Token: efgh5678'] }, ['abcd1234', 'efgh5678']],
  [{ url: 'https://h.test/mcp?exaApiKey=abcd1234', headers: { Authorization: 'Bearer t0ken' } }, ['abcd1234', 't0ken']],
  [{ url: 'https://h.test/s/4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c/mcp' }, ['4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c']]
])('finds the secrets that stand in %j as plain text', (raw, secrets) => {
  expect(literalSecrets(readEntry('a', raw, 1))).toEqual(expect.arrayContaining(secrets))
})

it.each([
  { command: 'x', args: ['-y', 'some-package', '/folder'], env: { MODE: 'fast' } },
  { url: 'https://h.test/mcp' }
])('finds none in %j', (raw) => {
  expect(literalSecrets(readEntry('a', raw, 1))).toEqual([])
})

it.each([
  [{ command: 'x', args: ['--db', 'postgres://a:p%40ss@h/d', '-v'] }, 'x --db postgres://a:•••@h/d -v'],
  [{ command: 'x', args: ['--api-key=abcd1234', '--token', 'efgh5678'] }, 'x --api-key=••• --token •••'],
  [{ command: 'docker', args: ['run', '-e', 'API_KEY=abcd1234', 'img'] }, 'docker run -e API_KEY=••• img'],
  [{ command: 'x', args: ['--header', 'Authorization: Bearer abcd1234'] }, 'x --header "Authorization: •••"'],
  [{ command: 'x', args: ['Server=h;Password=hunter2;'] }, 'x "Server=h;Password=•••;"'],
  [{ url: 'https://h.test/mcp?a=1&apiKey=ab%2Fcd12%3D=#token=zzzz' }, 'https://h.test/mcp?a=1&apiKey=•••#token=•••'],
  [{ url: 'https://h.test/s/4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c/mcp' }, 'https://h.test/s/•••/mcp']
])('masks the secrets of %j', (raw, shown) => {
  expect(maskedTarget(readEntry('a', raw, 1))).toBe(shown)
})
