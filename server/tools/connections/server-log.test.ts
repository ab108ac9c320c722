import { expect, it } from 'vitest'
import { ServerLog } from './server-log.ts'

it('blots out secrets whole, also where one begins like another or is written as JSON', () => {
  const log = new ServerLog(undefined)
  log.hide(['token'])
  log.hide(['token-of-ann', 'line\n"two"'])
  log.push(Buffer.from(`refused token-of-ann and token: ${JSON.stringify({ secret: 'line\n"two"' })}`))
  expect(log.tail()).toBe('refused [secret] and [secret]: {"secret":"[secret]"}')
})
