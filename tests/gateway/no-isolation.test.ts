/** On a system that can't keep servers apart: what runs, and who is told. */

import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})

/** In a user namespace that allows no other ones. */
const under = ['unshare', '-Ur', 'sh', '-c', 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', 'sh']

async function echo(env: Record<string, string>) {
  const gateway = await startGateway({ steady: child('steady') }, { under, env })
  running.push(gateway)
  const params = { message: 'hello' }
  const call = async () => textOf(await gateway.call('execute', { server: 'steady', tool: 'echo', params }))
  return { gateway, answers: [await call(), await call()] }
}

describe('where user namespaces are not allowed', { timeout: 60_000 }, () => {
  // Checked: if it starts one, the server answers.
  it('an instance that others use starts no server without a sandbox, and says why', async () => {
    const { answers } = await echo({ AUTH_TOKEN: 'a token that a team has' })
    for (const answer of answers)
      expect(answer).toMatch(/"steady" was not started.*Allow user namespaces, or give servers a .*sandbox/)
  })

  it("a person's own starts it, and warns once", async () => {
    const { gateway, answers } = await echo({})
    expect(answers.join()).toMatch(/hello.*hello/)
    await expect.poll(() => gateway.stderr().match(/On this system, servers without/g)).toHaveLength(1)
  })
})
