/** Tests what runs on a system that can't isolate servers, and who is told. */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { textOf } from '../support/text-of.ts'

const running: GatewayProcess[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map((gateway) => gateway.end()))
})

/** In a user namespace that allows this many other ones. */
const limited = (count: number, then = '') => [
  ...['unshare', '-Ur', 'sh', '-c', `echo ${count} >/proc/sys/user/max_user_namespaces && ${then} exec "$@"`, 'sh']
]

async function echo(env: Record<string, string>, under = limited(0)) {
  const gateway = await startGateway({ steady: child('steady') }, { under, env })
  running.push(gateway)
  const params = { message: 'hello' }
  const call = async () => textOf(await gateway.call('execute', { server: 'steady', tool: 'echo', params }))
  return { gateway, answers: [await call(), await call()] }
}

describe('where user namespaces are not allowed', { timeout: 60_000 }, () => {
  // Checked: if the gateway starts the server anyway, the server answers.
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

  // Checked: if nothing is remembered, the server answers, and could read the data folder.
  it.runIf(process.platform === 'linux')(
    'starts none where they were allowed before, and says what to do',
    async () => {
      const data = join(temporaryFolder(), 'data')
      const isolated = await echo({ DATA_DIR: data }, [])
      expect(isolated.answers.join()).toMatch(/hello.*hello/)
      await isolated.gateway.end()
      const { answers } = await echo({ DATA_DIR: data })
      for (const answer of answers)
        expect(answer).toMatch(/could be isolated on this machine before.*No space left.*delete .*isolation\.json/)
      rmSync(join(data, 'isolation.json'))
      expect((await echo({ DATA_DIR: data })).answers.join()).toMatch(/hello.*hello/)
    }
  )
})

describe('where all user namespaces are in use', { timeout: 60_000 }, () => {
  // Checked: if every failed probe means that the system can't, the server runs unprotected and answers.
  it('starts no server, because a server may have used them up', async () => {
    const space = (pid: string) => `"$(readlink /proc/${pid}/ns/user)"`
    const held = `unshare -U tail --pid=$$ -f /dev/null & while [ ${space('$!')} = ${space('$$')} ]; do :; done;`
    const { answers } = await echo({}, limited(1, held))
    for (const answer of answers)
      expect(answer).toMatch(/Could not check whether this system can isolate.*No space left/)
  })
})
