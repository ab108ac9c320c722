import { describe, expect, it } from 'vitest'
import type { ReachParams } from '../../../workspace-server/protocol.ts'
import { isAppError } from '../../lib/errors.ts'
import type { WorkspaceConnection } from '../port.ts'
import { CommonTargets, checkStillClosed, nodeTargets } from './network-check.ts'

const api = 'https://10.96.0.1:443'
const tcp = (host: string, port: number) => ({ protocol: 'tcp', host, port })
const targetsOf = (options: Partial<ConstructorParameters<typeof CommonTargets>[0]>) =>
  new CommonTargets({ api, isInside: false, ...options }).get()

describe('what a sandbox must not reach', () => {
  it('is the API server, its node by each address, the metadata address, and what we use or offer ourselves', async () => {
    const own = [
      { host: '10.0.0.7', port: 6379 },
      { host: '127.0.0.1', port: 3000 },
      { host: 'localhost', port: 6379 }
    ]
    expect(await targetsOf({ more: ['[fd00::5]:5432'], own })).toEqual([
      tcp('10.96.0.1', 443),
      tcp('fd00::5', 5432),
      tcp('10.0.0.7', 6379),
      tcp('169.254.169.254', 80)
    ])
    const addresses = { hostIP: '10.1.0.2', hostIPs: [{ ip: '10.1.0.2' }, { ip: 'fd01::2' }] }
    expect(nodeTargets(addresses)).toEqual([tcp('10.1.0.2', 10_250), tcp('fd01::2', 10_250)])
  })

  // Checked: before, a name that could not be found was left out, and the sandbox counted as closed.
  it.each([
    ['the API server', { api: 'https://nowhere.invalid:6443' }],
    ['a target of the administrator', { more: ['nowhere.invalid:5432'] }],
    ['a service of ours', { own: [{ host: 'nowhere.invalid', port: 6379 }] }]
  ])('can not be checked if the name of %s is not found', async (_what, options) => {
    const error = await targetsOf(options).catch((caught) => caught)
    expect(isAppError(error, 'network_unchecked') && error.where).toContain('nowhere.invalid')
    expect(error.message).not.toContain('nowhere')
  })

  it('can not be checked if there are more than a sandbox tries', async () => {
    const more = Array.from({ length: 40 }, (_, n) => `10.0.0.${n}:443`)
    await expect(targetsOf({ more })).rejects.toMatchObject({ code: 'network_unchecked' })
  })
})

it('names what was reached to operators only', async () => {
  const reach = async ({ targets }: ReachParams) => targets.map((_, index) => index).slice(0, 1)
  const error = await checkStillClosed({ reach } as unknown as WorkspaceConnection, [
    { protocol: 'tcp', host: '10.96.0.1', port: 443 }
  ]).catch((caught) => caught)
  expect(error).toMatchObject({ code: 'network_open', where: 'it reaches 10.96.0.1:443' })
  expect(error.message).not.toContain('10.96')
})
