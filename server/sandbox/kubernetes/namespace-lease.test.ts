/** An instance without Redis needs the namespace for itself. Pods without containers. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startBareCluster } from '../../../tests/fixtures/kubernetes/bare-pods.ts'
import { NAMESPACE, type TestCluster } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { silentLogger } from '../../lib/logger.ts'
import { NamespaceLease } from './namespace-lease.ts'

const taken = { code: 'namespace_taken', message: expect.stringContaining('REDIS_URL') }
let test: TestCluster
beforeEach(async () => {
  test = await startBareCluster()
})
afterEach(() => test.stop())

const leaseOf = (holder: string, seconds?: number) =>
  new NamespaceLease({ api: test.engine().api, holder, logger: silentLogger, ...(seconds ? { seconds } : {}) })

async function crashed(holderIdentity: string): Promise<void> {
  const spec = { holderIdentity, leaseDurationSeconds: 30 }
  await test.engine().api.createLease({ metadata: { name: 'mcp-orchestrator' }, spec })
}

describe('two instances without Redis', () => {
  // Without the lease, both would create pods.
  it('do not both create pods, until the first has ended', async () => {
    const [one, two] = [test.engine({ alone: 'one' }), test.engine({ alone: 'two' })]
    await one.ensureImage()
    await expect(two.ensureImage()).rejects.toMatchObject(taken)
    expect([await one.hasImage(), await two.hasImage()]).toEqual([true, false])
    await expect(two.create(test.owner)).rejects.toMatchObject(taken)
    await one.create(test.owner)
    expect(test.cluster.pods(NAMESPACE)).toHaveLength(1)
    await one.close()
    await two.create(test.owner)
  })

  it('at the same moment: one is given it', async () => {
    const holders = Array.from({ length: 10 }, (_, n) => leaseOf(`instance-${n}`))
    const results = await Promise.allSettled(holders.map((each) => each.take()))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject(taken)
    await Promise.all(holders.map((each) => each.release()))
  })

  it('do not wait for themselves after a crash', async () => {
    await crashed('one')
    const again = leaseOf('one')
    await again.take()
    await again.release()
  })

  it('wait for another one as long as it may still live, whatever its clock says', async () => {
    await crashed('one')
    const next = leaseOf('two', 0.2)
    await expect(next.take()).rejects.toMatchObject(taken)
    const isTaken = () =>
      next.take().then(
        () => true,
        () => false
      )
    await expect.poll(isTaken).toBe(true)
    await next.release()
  })

  it('that share a store need no lease', async () => {
    const [one, two] = [test.engine(), test.engine()]
    await Promise.all([one.create(test.owner), two.create({ ...test.owner, instance: 'two' })])
    expect(test.cluster.calls).not.toContain('create coordination.k8s.io/leases')
  })
})
