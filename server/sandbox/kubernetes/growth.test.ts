/** The costs that grow with the number of pods. Pods without containers. */
import { afterEach, expect, it } from 'vitest'
import {
  LIMITS,
  NAMESPACE,
  startTestCluster,
  type TestCluster
} from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { LABEL, podOf, STATE } from './pod-spec.ts'

let test: TestCluster
afterEach(() => test.stop())

async function withPods(count: number): Promise<void> {
  test = await startTestCluster({ hasContainers: false })
  const labels = { [LABEL.deployment]: test.owner.deployment, [LABEL.state]: STATE.used, [LABEL.instance]: 'other' }
  for (let n = 0; n < count; n++) {
    const name = `mcp-sandbox-${20_000 + n}`
    const pod = podOf({ name, uid: 20_000 + n, limits: LIMITS, options: { image: 'sandbox' }, labels })
    const metadata = { name, labels: pod.metadata?.labels ?? {} }
    test.cluster.objects.create('Pod', NAMESPACE, { ...pod, metadata, status: { phase: 'Running' } })
  }
}

it('a new pod finds a free name after a few tries, also if there is only one', async () => {
  await withPods(999)
  let creates = 0
  test.cluster.fault = (call) => {
    if (call === 'create pods') creates += 1
    return undefined
  }
  expect(await test.engine().create(test.owner)).toMatch(/^mcp-sandbox-20999@/)
  expect(creates).toBeLessThanOrEqual(4)
})

it('the janitor reads the names and labels of pods alone, and those of one instance if it asks for them', async () => {
  await withPods(20)
  const engine = test.engine()
  const bytes = async (instance?: string) => {
    const before = test.cluster.sentBytes
    const found = await engine.list(test.owner.deployment, instance)
    return { found: found.length, sent: test.cluster.sentBytes - before }
  }
  const all = await bytes()
  expect(all.found).toBe(20)
  expect(all.sent / 20).toBeLessThan(1000)
  expect(await bytes('nobody')).toMatchObject({ found: 0 })
})

it('questions whether this server is ready count the pods once', async () => {
  await withPods(20)
  const engine = test.engine()
  for (let n = 0; n < 5; n++) expect(await engine.status()).toMatchObject({ name: 'Kubernetes', containers: 20 })
  expect(test.cluster.calls).toEqual(['list /pods'])
})
