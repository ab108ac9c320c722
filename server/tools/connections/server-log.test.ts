import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ServerLog } from './server-log.ts'

it('blots out secrets whole, also where one begins like another or is written as JSON', () => {
  const log = new ServerLog(undefined)
  log.hide(['token'])
  log.hide(['token-of-ann', 'line\n"two"'])
  log.push(Buffer.from(`refused token-of-ann and token: ${JSON.stringify({ secret: 'line\n"two"' })}`))
  expect(log.tail()).toBe('refused [secret] and [secret]: {"secret":"[secret]"}')
})

it('blots out a secret that comes in two pieces, or is cut by the end of what is kept', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'server-log-')), 'a.log')
  const log = new ServerLog(file)
  log.hide(['token-of-ann'])
  log.push(Buffer.from('one token-o'))
  await log.flush()
  expect([log.tail(), readFileSync(file, 'utf8')]).toEqual(['one [secret]', 'one '])
  log.push(Buffer.from('f-ann two tok'))
  await log.flush()
  log.push(Buffer.from('en three token-of-a'))
  await log.flush({ final: true })
  expect(readFileSync(file, 'utf8')).toBe('one [secret] two token three [secret]')
  const rest = 'x'.repeat(16 * 1024 - '-of-ann'.length)
  log.push(Buffer.from(`token-of-ann${rest}`))
  expect(log.tail()).toBe(rest)
})
