import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../tests/support/eventually.ts'
import { outsidePid } from '../../tests/support/outside-pid.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { textOf } from '../../tests/support/text-of.ts'
import type { Caller } from '../calls/caller.ts'
import { child, openTestConnections, type TestConnections } from './connections.fixture.ts'
import { readServerLog } from './server-log.ts'

const opened: TestConnections[] = []
afterEach(async () => {
  await Promise.all(opened.splice(0).map((test) => test.close()))
})

const secret = (name: string) => `\${secret:${name}}`
const caller = (owner: string, connection?: string): Caller => ({ owner, door: 'http', laneId: connection })

function credentialsFile(content: unknown): string {
  const file = join(temporaryFolder(), 'credentials.json')
  save(file, content)
  return file
}

function save(file: string, content: unknown): void {
  writeFileSync(file, JSON.stringify(content))
  chmodSync(file, 0o600)
}

async function open(servers: Record<string, unknown>, credentials: string) {
  const test = await openTestConnections(servers, { credentials })
  opened.push(test)
  const env = async (server: string, who: Caller) => {
    const { TOKEN, pid } = JSON.parse(textOf((await test.call(server, 'who', {}, { caller: who })).result))
    return { TOKEN, pid: outsidePid(pid) }
  }
  return { ...test, env }
}

describe('connections by owner', { timeout: 60_000 }, () => {
  // Checked: if all share one connection, one owner's key is used for all.
  it("use each owner's own credentials, and the shared ones for owners without", async () => {
    const common = { KEY: 'common-key', OTHER: 'x' }
    const owners = { anna: { KEY: 'annas-key' }, ben: { KEY: 'bens-key' }, cleo: { UNRELATED: 'y' } }
    const file = credentialsFile({ ...common, owners })
    const { env, connections } = await open({ a: child('who', [], { env: { TOKEN: secret('KEY') } }) }, file)
    const calls = Array.from({ length: 60 }, (_, i) => ['anna', 'ben', 'cleo', 'local'][i % 4]!)
    const answers = await Promise.all(calls.map((owner) => env('a', caller(owner))))
    const expected = { anna: 'annas-key', ben: 'bens-key', cleo: 'common-key', local: 'common-key' }
    expect(answers.map(({ TOKEN }) => TOKEN)).toEqual(calls.map((owner) => expected[owner as keyof typeof expected]))
    // Cleo and the one without a name share: three processes, not four.
    expect(connections.childPids).toHaveLength(3)
    expect(connections.state('a')).toMatchObject({ state: 'running' })
  })

  it('keep the log of one owner from all others', async () => {
    const file = credentialsFile({ KEY: 'common-key', owners: { anna: { KEY: 'annas-key' } } })
    const { call, connections, dir } = await open({ a: child('steady', [], { env: { TOKEN: secret('KEY') } }) }, file)
    await call('a', 'complain', {}, { caller: caller('anna') })
    await eventually('her words', () => connections.logTail('a', 'anna').includes('secret is'))
    await call('a', 'die', {}, { caller: caller('anna'), mustNotRepeat: true }).catch(() => {})
    expect(connections.logTail('a', 'ben')).toBe('')
    await connections.stop('a')
    expect(await readServerLog(join(dir, 'logs'), 'a', 10, 'ben')).toBeUndefined()
    expect(await readServerLog(join(dir, 'logs'), 'a', 10, 'anna')).toEqual(['secret is [secret]'])
    expect(connections.state('a')?.lastError?.message).toMatch(/^It failed for an owner/)
  })

  it('are shared by all owners if no secret differs', async () => {
    const file = credentialsFile({ owners: { anna: { KEY: 'annas-key' } } })
    const { env, connections } = await open({ a: child('who') }, file)
    const [one, other] = [await env('a', caller('anna')), await env('a', caller('ben'))]
    expect(one.pid).toBe(other.pid)
    expect(connections.childPids).toHaveLength(1)
  })

  it('fail for an owner without a secret, also while another owner has a running one', async () => {
    const file = credentialsFile({ owners: { anna: { KEY: 'annas-key' } } })
    const { env } = await open({ a: child('who', [], { env: { TOKEN: secret('KEY') } }) }, file)
    expect((await env('a', caller('anna'))).TOKEN).toBe('annas-key')
    await expect(env('a', caller('ben'))).rejects.toMatchObject({ code: 'secret_missing' })
    await expect(env('a', caller('toString'))).rejects.toMatchObject({ code: 'secret_missing' })
    expect((await env('a', caller('anna'))).TOKEN).toBe('annas-key')
  })

  it('follow the file: an owner who gets a key of their own leaves the shared connection', async () => {
    const file = credentialsFile({ KEY: 'common-key' })
    const { env } = await open({ a: child('who', [], { env: { TOKEN: secret('KEY') } }) }, file)
    expect((await env('a', caller('anna'))).TOKEN).toBe('common-key')
    save(file, { KEY: 'common-key', owners: { anna: { KEY: 'annas-key' } } })
    expect((await env('a', caller('anna'))).TOKEN).toBe('annas-key')
    expect((await env('a', caller('ben'))).TOKEN).toBe('common-key')
    chmodSync(file, 0o644)
    await expect(env('a', caller('anna'))).rejects.toThrow(/chmod 600/)
  })

  it('have flushed their logs when everything is closed, even for a client that has just left', async () => {
    const { call, connections, log } = await open({ a: child('steady') }, credentialsFile({}))
    await call('a', 'complain', {}, { caller: caller('anna', 'client-1') })
    await eventually('its words', () => connections.logTail('a', 'anna').includes('secret is'))
    connections.release('client-1')
    await connections.close()
    expect(log('a')).toContain('secret is')
  })

  it('belong to one client if it asks for a lane, and close with it', async () => {
    const { env, connections } = await open({ a: child('who') }, credentialsFile({}))
    const shared = await env('a', caller('anna'))
    const first = await env('a', caller('anna', 'client-1'))
    const second = await env('a', caller('anna', 'client-2'))
    expect(new Set([shared.pid, first.pid, second.pid]).size).toBe(3)
    expect((await env('a', caller('anna', 'client-1'))).pid).toBe(first.pid)
    connections.release('client-1')
    await eventually('its process to end', () => !connections.childPids.includes(first.pid))
    expect(connections.childPids.sort()).toEqual([shared.pid, second.pid].sort())
  })
})
