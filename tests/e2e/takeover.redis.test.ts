import { randomUUID } from 'node:crypto'
import { afterEach, expect, it } from 'vitest'
import { type FrontProxy, openFrontProxy } from '../chaos/front-proxy.ts'
import { type Client, connectClient } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { serve, stopServers } from '../support/serve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { testRedisEnv } from '../support/test-redis.ts'
import { textOf } from '../support/text-of.ts'

const SESSIONS = 9
const clients: Client[] = []
let front: FrontProxy | undefined

afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  await front?.close()
  await stopServers()
})

it('when one of three instances with nine live sessions is killed, all sessions continue on the others without losing anything', {
  timeout: 240_000
}, async () => {
  const env = { ...(await testRedisEnv()), JANITOR_INTERVAL_SECONDS: '1' }
  const dataDir = temporaryFolder()
  const instances = await Promise.all([1, 2, 3].map(() => serve(env, { dataDir })))
  const alive = new Set(instances)
  front = await openFrontProxy(() => [...alive].map(({ port }) => port))
  const url = front.url
  const people = Array.from({ length: SESSIONS }, () => {
    const id = `moves-${randomUUID()}`
    const client = connectClient(url, id, { browser: randomUUID() + randomUUID(), reconnects: true })
    clients.push(client)
    return { id, client }
  })
  await Promise.all(
    people.map(async ({ client, id }) => {
      await client.snapshot()
      await client.sh(`echo ${id} > mine.txt`)
    })
  )

  const victim = instances[0]!
  alive.delete(victim)
  const killed = performance.now()
  await victim.kill9()
  const times = await Promise.all(
    people.map(async ({ client, id }) => {
      // Clients of the other instances notice nothing; those of the dead one reconnect by themselves and ask again.
      let said = ''
      await eventually('the session does as it is told', async () => {
        if (!client.socket.connected) return false
        said = await client.sh('cat mine.txt').catch(() => '')
        return said !== ''
      })
      expect(said).toContain(id)
      return performance.now() - killed
    })
  )
  // Prints a figure for the reader of the output. It is not checked, because a busy machine is not a bug.
  process.stderr.write(`all ${SESSIONS} usable ${Math.round(Math.max(...times))} ms after the kill\n`)
  for (const { client } of people) {
    const results = client.seen.filter(({ event }) => event === 'tool:result')
    expect(results.filter(({ data }) => textOf(data).includes('unknown'))).toEqual([])
    // Every tab saw every event once, in order, across the move.
    const numbers = client.seen.filter(({ data }) => typeof data.at === 'number').map(({ data }) => Number(data.seq))
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(new Set(numbers).size).toBe(numbers.length)
  }
})
