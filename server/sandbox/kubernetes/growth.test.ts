/** The costs that grow with the number of pods. Pods without containers. */
import { afterEach, expect, it } from 'vitest'
import { addPods, startBareCluster } from '../../../tests/fixtures/kubernetes/bare-pods.ts'
import type { TestCluster } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'

let test: TestCluster
afterEach(() => test.stop())

async function withPods(count: number): Promise<void> {
  test = await startBareCluster()
  addPods(test, count)
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
