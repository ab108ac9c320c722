import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { eventually } from '../../../tests/support/eventually.ts'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { child, openTestConnections } from '../connections.fixture.ts'

it('a server that is still downloaded goes on starting', { timeout: 120_000 }, async () => {
  const file = join(temporaryFolder(), 'downloaded')
  writeFileSync(file, '')
  const test = await openTestConnections({ slow: child('who-slow', [file], { timeoutMs: { start: 15_000 } }) })
  try {
    const error = await test.call('slow', 'who').catch((failure) => failure)
    expect(error).toMatchObject({ code: 'server_starting', details: { sent: false } })
    expect(test.connections.state('slow')).toMatchObject({ state: 'starting', starts: 0 })
    writeFileSync(`${file}.second`, '')
    await eventually('it to run', () => test.connections.state('slow')?.state === 'running')
    expect(await test.call('slow', 'who')).toMatchObject({ attempts: 1 })
    expect(test.connections.state('slow')).toMatchObject({ starts: 1 })
  } finally {
    await test.close()
  }
})
