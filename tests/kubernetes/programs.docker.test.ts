/** The gateway with pods for programs, on a stand-in for the API server of a cluster. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import {
  localImage,
  NAMESPACE,
  startTestCluster,
  type TestCluster
} from '../fixtures/kubernetes/kubernetes-sandboxes.ts'
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts'

let test: TestCluster
let gateway: GatewayProcess

beforeAll(async () => {
  const image = await localImage()
  test = await startTestCluster({}, image)
  const env = { SANDBOX_ENGINE: 'kubernetes', KUBECONFIG: test.kubeconfig, KUBERNETES_IMAGE: image }
  gateway = await startGateway({ steady: child('steady') }, { args: ['--code'], env })
})
afterAll(async () => {
  await gateway.end()
  await test.stop()
})

it('runs a program in a pod, which calls tools and leaves no pod behind', async () => {
  const code = "await tools.steady.echo({ message: 'from a pod' })"
  const { structuredContent } = await gateway.client.callTool(
    { name: 'run_code', arguments: { code } },
    { timeout: 100_000 }
  )
  expect(structuredContent).toMatchObject({ status: 'completed', value: 'from a pod', calls: 1 })
  expect(test.cluster.commands.join('\n')).toContain('launch')
  await gateway.end()
  await expect.poll(() => test.cluster.pods(NAMESPACE)).toEqual([])
})
