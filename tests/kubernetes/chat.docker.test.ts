/** The whole program with pods for sandboxes: on a real cluster if there is one. */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type EitherCluster, startEitherCluster } from '../fixtures/kubernetes/either-cluster.ts'
import { realCluster } from '../fixtures/kubernetes/which-cluster.ts'
import { freePort } from '../support/free-port.ts'
import { productArgs, productEnv } from '../support/product.ts'
import { type Served, serve, stopServers } from '../support/serve.ts'
import { discard, temporaryFolder } from '../support/temporary-folder.ts'

let test: EitherCluster
let server: Served
const settings = () => ({ SANDBOX_ENGINE: 'kubernetes', KUBECONFIG: test.kubeconfig, KUBERNETES_IMAGE: test.image })

beforeAll(async () => {
  test = await startEitherCluster()
  server = await serve({ ...settings(), WARM_POOL_SIZE: '1', PAUSE_AFTER_SECONDS: '1' })
})
afterAll(async () => {
  await stopServers()
  expect(await test.pods()).toEqual([])
  await test.stop()
})

const live = async () => (await test.pods()).length

it('runs an approved command in a pod, and gives the pod up when the tab is closed: the files are in the next one', async () => {
  const id = `chat-${randomUUID()}`
  const client = server.connect(id)
  const { token } = await client.ready()
  expect(await client.sh('hostname; id -u; echo kept > file')).toMatch(/20\d{3}/)
  const readyz = (await (await fetch(`${server.url}/readyz`)).json()) as { engine: { detail: string } }
  expect(readyz.engine.detail).toMatch(/^Kubernetes v1/)
  await expect.poll(live).toBe(2)
  client.close()
  // The warm one stays.
  await expect.poll(live).toBe(1)
  const again = server.connect(id, { token })
  await again.ready()
  expect(await again.sh('cat file')).toContain('kept')
})

it('has a doctor that checks rights, policy, quota and a pod from inside', async () => {
  const env = { ...process.env, ...productEnv(), ...settings(), LLM_PROVIDER: 'demo', DATA_DIR: temporaryFolder() }
  const args = [...productArgs('main'), 'doctor', '--port', String(await freePort())]
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, cwd: env.DATA_DIR })
  discard(env.DATA_DIR)
  expect(stdout).toMatch(/^ok {4}engine +Kubernetes v1\.\d+\.\S+, \d+ containers?$/m)
  expect(stdout).toMatch(/^ok {4}rights +all that are needed in the namespace \S+$/m)
  expect(stdout).toMatch(/^ok {4}policy +deny-all closes the namespace \S+$/m)
  const quota = realCluster(process.env)
    ? /^(ok|warn) +quota /m
    : /^warn {2}quota +The namespace sandboxes has no ResourceQuota/m
  expect(stdout).toMatch(quota)
  expect(stdout).toMatch(/^ok {4}limits +enforced: 512 MB, 0\.5 CPU, 128 processes/m)
})
