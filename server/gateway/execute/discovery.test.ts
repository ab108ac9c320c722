import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { noAudit } from '../../audit/audit.fixture.ts'
import { child, LOCAL, openTestConnections } from '../../connections/connections.fixture.ts'
import { createPolicy } from '../../policy/approval-policy.ts'
import { Discovery } from './discovery.ts'

it('shows the server errors of one owner to nobody else, and tries the credentials of each owner', async () => {
  const dir = temporaryFolder()
  const credentials = join(dir, 'credentials.json')
  const owners = { anna: { KEY: 'anna' }, ben: { KEY: 'ben' } }
  writeFileSync(credentials, JSON.stringify({ KEY: 'none', owners }), { mode: 0o600 })
  const script = `console.error("the account of " + process.env.WHO.toUpperCase() + " is closed"); process.exit(1)`
  const server = { command: process.execPath, args: ['-e', script], env: { WHO: `\${secret:KEY}` } }
  const test = await openTestConnections({ a: server }, { credentials })
  try {
    const core = { ...test, policy: createPolicy([]), audit: noAudit, learn: () => {} }
    const discovery = new Discovery()
    const { signal } = new AbortController()
    const asked = async (owner: string) => {
      const { failed } = await discovery.discover(core, { caller: { owner, door: 'http' }, signal }, 20_000)
      return failed.map(({ reason }) => reason)
    }
    expect(await asked('anna')).toEqual([expect.stringMatching('account of ANNA')])
    const toBen = await asked('ben')
    expect(toBen).toEqual([expect.stringMatching('account of BEN')])
    expect(await asked('anna')).toEqual([expect.stringMatching('account of ANNA')])
  } finally {
    await test.close()
    rmSync(dir, { recursive: true })
  }
})

// Seen before: a registry of 1,000 servers had 1,000 processes after the first search, and a named call waited 80 s for its start.
it('stops most servers that it started only to list them, and holds up no call by those that hang', async () => {
  const many = (name: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`${name}-${at}`, child(name)]))
  const listed = await openTestConnections(many('steady', 5))
  const hanging = await openTestConnections({ ...many('hang-on-start', 6), named: child('steady') })
  const context = { caller: LOCAL, signal: new AbortController().signal }
  const discover = (test: typeof listed, waitMs: number) => {
    const core = { ...test, policy: createPolicy([]), audit: noAudit, learn: () => {} }
    return new Discovery(2).discover(core, context, waitMs)
  }
  try {
    expect((await discover(listed, 60_000)).pending).toEqual([])
    await expect.poll(() => listed.connections.childPids.length).toBe(2)
    expect((await discover(hanging, 1)).pending).toContain('named')
    expect(await hanging.connections.list('named', context)).not.toEqual([])
  } finally {
    await Promise.all([listed.close(), hanging.close()])
  }
})
