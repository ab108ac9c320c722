/** The whole program with pods for sandboxes, on a stand-in for the API server of a cluster. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  localImage,
  NAMESPACE,
  startTestCluster,
  type TestCluster
} from '../fixtures/kubernetes/kubernetes-sandboxes.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'

let test: TestCluster
let server: Served
beforeAll(async () => {
  const image = await localImage()
  test = await startTestCluster({}, image)
  const { kubeconfig: KUBECONFIG } = test
  const settings = { SANDBOX_ENGINE: 'kubernetes', KUBECONFIG, KUBERNETES_IMAGE: image }
  server = await serve({ ...settings, WARM_POOL_SIZE: '1', PAUSE_AFTER_SECONDS: '1' })
})
afterAll(async () => {
  await stopServers()
  expect(test.cluster.pods(NAMESPACE).filter(({ metadata }) => !metadata.deletionTimestamp)).toEqual([])
  await test.stop()
})

const live = () => test.cluster.pods(NAMESPACE).filter(({ metadata }) => !metadata.deletionTimestamp)

it('runs an approved command in a pod, and gives the pod up when the tab is closed: the files are in the next one', async () => {
  const id = `chat-${randomUUID()}`
  const client = server.connect(id)
  const { token } = await client.ready()
  expect(await client.sh('hostname; id -u; echo kept > file')).toMatch(/20\d{3}/)
  const readyz = (await (await fetch(`${server.url}/readyz`)).json()) as { engine: { detail: string } }
  expect(readyz.engine.detail).toMatch(/^Kubernetes v1/)
  await expect.poll(() => live().length).toBe(2)
  client.close()
  // The warm one stays.
  await expect.poll(() => live().length).toBe(1)
  const again = server.connect(id, { token })
  await again.ready()
  expect(await again.sh('cat file')).toContain('kept')
})
