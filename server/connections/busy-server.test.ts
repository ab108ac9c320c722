import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { eventually } from '../../tests/support/eventually.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { textOf } from '../../tests/support/text-of.ts'
import { child, LOCAL, openTestConnections } from './connections.fixture.ts'

it('keeps a server that does not answer a test because it is busy, and its running call', async () => {
  const dir = temporaryFolder()
  const file = join(dir, 'busy')
  const timeoutMs = { start: 30_000, list: 1000, call: 60_000 }
  const { call, connections, close } = await openTestConnections({ a: child('blocking', [file], { timeoutMs }) })
  try {
    const called = call('a', 'block', {}, { mustNotRepeat: true })
    called.catch(() => {})
    await eventually('the call', () => existsSync(file))
    const { signal } = new AbortController()
    const tested = connections.test('a', { caller: LOCAL, signal })
    await expect(tested).rejects.toMatchObject({ code: 'child_timeout' })
    rmSync(file)
    expect(textOf((await called).result)).toBe('done')
  } finally {
    await close()
    rmSync(dir, { recursive: true })
  }
}, 30_000)
