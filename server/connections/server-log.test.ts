import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { ServerLog } from './server-log.ts'

it('redacts whole secrets, even if one begins like another or is written as JSON', () => {
  const log = new ServerLog(undefined)
  log.hide(['token'])
  log.hide(['token-of-ann', 'line\n"two"'])
  log.push(Buffer.from(`refused token-of-ann and token: ${JSON.stringify({ secret: 'line\n"two"' })}`))
  expect(log.tail()).toBe('refused [secret] and [secret]: {"secret":"[secret]"}')
})

it('redacts a secret of several lines by line, and one that is cut off at the end of a line', () => {
  const log = new ServerLog(undefined)
  log.hide(['-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nBKcwggSjAgEAAoIB\n-----END KEY-----', 'sk-live-ABCDEFGH'])
  log.push(Buffer.from('-----BEGIN KEY-----\r\nMIIEvQIBADANBgkq\r\nBKcwggSjAgEAAoIB\r\n'))
  log.noise('key MIIEvQIBADANBgkq')
  log.noise('token=sk-live-ABC')
  const lines = [
    '-----BEGIN KEY-----\r',
    '[secret]\r',
    '[secret]\r',
    '[stdout] key [secret]',
    '[stdout] token=[secret]',
    ''
  ]
  expect(log.tail().split('\n')).toEqual(lines)
})

// Checked: if nobody waits for a write in progress, the process ends before the file is complete.
it('is in the file after a flush, including what an earlier flush is still writing', async () => {
  const file = join(temporaryFolder(), 'a.log')
  const log = new ServerLog(file)
  log.push(Buffer.from('one '))
  void log.flush()
  await log.flush({ final: true })
  expect(readFileSync(file, 'utf8')).toBe('one ')
  const all = Array.from({ length: 20 }, (_, at) => `${at} `)
  await Promise.all(
    all.map((text) => {
      log.push(Buffer.from(text))
      return log.flush()
    })
  )
  expect(readFileSync(file, 'utf8')).toBe(`one ${all.join('')}`)
})

it('redacts a secret that comes in two pieces, or is cut off by the limit', async () => {
  const file = join(temporaryFolder(), 'a.log')
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
