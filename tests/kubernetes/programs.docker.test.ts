/** The gateway with pods for programs, on a real cluster if there is one. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { child } from '../../server/connections/connections.fixture.ts'
import { LABEL } from '../../server/sandbox/kubernetes/pod-spec.ts'
import { type EitherCluster, startEitherCluster } from '../fixtures/kubernetes/either-cluster.ts'
import { type GatewayProcess, startGateway } from '../support/gateway-process.ts'

let test: EitherCluster
let gateway: GatewayProcess

beforeAll(async () => {
  test = await startEitherCluster()
  const env = { SANDBOX_ENGINE: 'kubernetes', KUBECONFIG: test.kubeconfig, KUBERNETES_IMAGE: test.image }
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
  expect((await test.pods()).map(({ metadata }) => metadata?.labels?.[LABEL.app])).toContain('child')
  await gateway.end()
  await expect.poll(() => test.pods()).toEqual([])
})
