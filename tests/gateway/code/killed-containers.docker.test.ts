/**
 * Kills the container of a program at every event of its log. It is the real gateway with its store, its container engine and a server
 * that writes.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect, it } from 'vitest'
import { child } from '../../../server/connections/connections.fixture.ts'
import { packageRoot } from '../../../server/lib/files/package-root.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import { ApprovalInbox } from '../../../server/policy/approval-inbox.ts'
import { openEmbeddedStore } from '../../../server/storage/embedded/open-embedded-store.ts'
import { eventually } from '../../support/eventually.ts'
import { processesWith } from '../../support/gateway-process.ts'
import { discard, temporaryFolder } from '../../support/temporary-folder.ts'

/** Three reads, two of them at once, two writes that are approved, and one that waits. */
const CODE = `const { ids } = JSON.parse(await tools.steady.echo({ message: '{"ids":["x","y"]}' }))
const [a, b] = await Promise.all(ids.map((id) => tools.steady.echo({ message: id + '@example.test' })))
const send = (message) => tools.steady.write({ message }).then(() => 'sent', (error) => error.code)
const said = [await send(a), await send(b)]
console.log('two')
said.push(await send('chief' + Math.floor(Math.random() * 1e9)))
;({ a, b, said })`
const WRITES = ['x@example.test', 'y@example.test', expect.stringMatching(/^chief\d+$/)]

type Args = Record<string, unknown>

const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [])

/** A store with a server that writes, and a person who decides. */
async function openWorld() {
  const dir = temporaryFolder()
  const [count, notes, config] = ['count', 'notes', 'mcp.json'].map((name) => join(dir, name)) as [
    string,
    string,
    string
  ]
  writeFileSync(config, JSON.stringify({ mcpServers: { steady: child('steady', [count]) } }))
  const store = await openEmbeddedStore({ dataDir: join(dir, 'data'), deploymentId: undefined, logger: silentLogger })
  const inbox = new ApprovalInbox(store.keyValues)
  const sent = () => linesOf(count)
  return {
    ...{ inbox, sent, count },
    containers: () => linesOf(`${notes}.containers`),
    gateway: () => startGateway(config, { DATA_DIR: join(dir, 'data'), NOTES: notes }),
    /** Approves what certainly did not run. What may have run is repeated only if it did not. */
    async person(where: string, isOver: () => Promise<boolean>) {
      await eventually(`${where}: the program is over`, async () => {
        for (const { id, hash, warning, args } of await inbox.open()) {
          const approved = warning === undefined || !sent().includes(String(args.message))
          await inbox.answer(id, hash, { approved }).catch(() => {})
        }
        return isOver()
      })
    },
    async close() {
      await store.close()
      discard(dir)
    }
  }
}
type World = Awaited<ReturnType<typeof openWorld>>

async function startGateway(config: string, more: Record<string, string>) {
  const { PATH = '', HOME = '' } = process.env
  const preload = resolve(import.meta.dirname, 'killed-containers.fixture.ts')
  const main = join(packageRoot(), 'server/gateway-main.ts')
  const args = [
    '--disable-warning=ExperimentalWarning',
    '--import',
    preload,
    main,
    'gateway',
    '--code',
    '--config',
    config
  ]
  const env = { PATH, HOME, ...more }
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: 'ignore' })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  return {
    run: async (given: Args): Promise<Args> => {
      const { structuredContent } = await client.callTool({ name: 'run_code', arguments: given }, { timeout: 100_000 })
      return { ...(structuredContent as Args) }
    },
    close: () => client.close()
  }
}

/** Looks at the result, at what was written, and for what is left. */
async function check(world: World, ended: Args, where: string): Promise<void> {
  const { sent, inbox } = world
  expect(sent(), where).toEqual(WRITES)
  expect(ended, where).toMatchObject({ status: 'completed', logs: 'two', calls: 6 })
  expect(ended.value, where).toMatchObject({ a: 'x@example.test', b: 'y@example.test' })
  expect(await inbox.open(), where).toEqual([])
}

async function checkLeft(world: World, where: string): Promise<void> {
  const found = () => execFileSync('docker', ['ps', '-aq', '--no-trunc'], { encoding: 'utf8' }).split('\n')
  await eventually(`${where}: containers are removed`, () => {
    const all = new Set(found())
    return world.containers().every((id) => !all.has(id))
  })
  await eventually(`${where}: servers have ended`, () => processesWith(world.count).length === 0)
}

it('makes each write once and ends with the same result, wherever its container is killed', {
  timeout: 900_000
}, async () => {
  const world = await openWorld()
  const gateway = await world.gateway()
  for (let n = 1; n <= 16; n++) {
    const before = world.sent().length
    const where = `container killed at event ${n}`
    let { runId, status, ...ended } = await gateway.run({ code: CODE })
    await world.person(where, async () => {
      if (status === 'waiting' || status === 'running') ({ status, ...ended } = await gateway.run({ runId }))
      return status !== 'waiting' && status !== 'running'
    })
    await check({ ...world, sent: () => world.sent().slice(before) }, { status, ...ended }, where)
    expect(ended.value, where).toMatchObject({ said: ['sent', 'sent', 'sent'] })
  }
  await gateway.close()
  await checkLeft(world, 'containers killed')
  await world.close()
})
