/** A kubelet that restarts or is gone. Its pods have no containers, and their server is in this process. */
import { afterEach, describe, expect, it } from 'vitest'
import { startBareCluster } from '../../../tests/fixtures/kubernetes/bare-pods.ts'
import { serveFakeWorkspace } from '../../../tests/fixtures/kubernetes/fake-server.ts'
import { NAMESPACE, type TestCluster } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { ApiFailure } from '../../../tests/fixtures/kubernetes/objects.ts'
import type { ApiFault } from '../../../tests/fixtures/kubernetes/stand-in-cluster.ts'
import type { KubernetesEngineOptions } from './kubernetes-engine.ts'

let test: TestCluster
afterEach(() => test.stop())

const dial = 'error dialing backend: dial tcp 10.9.8.7:10250: connect: connection refused'
const faults: [string, ApiFault][] = [
  ['knows no pods yet', new ApiFailure(404, 'NotFound', 'pod does not exist')],
  ['has not found the container yet', new ApiFailure(404, 'NotFound', 'container not found ("sandbox")')],
  ['is down', new ApiFailure(500, 'InternalError', dial)],
  ['is out of reach', new ApiFailure(500, 'InternalError', 'dial tcp 10.9.8.7:10250: i/o timeout')],
  ['is down, as nodes before 1.36 say it', { streamed: dial }],
  ['is shut down while it opens the stream', 'lost']
]

async function open(options: Partial<KubernetesEngineOptions> = {}) {
  test = await startBareCluster({ exec: serveFakeWorkspace })
  const engine = test.engine(options)
  return { engine, id: await engine.create(test.owner) }
}

describe('a node whose kubelet', () => {
  it.each(faults)('%s for a moment is asked again', async (_what, fault) => {
    const { engine, id } = await open()
    let asked = 0
    test.cluster.fault = (call) => (call === 'exec pods' && ++asked < 4 ? fault : undefined)
    const connection = await engine.connect(id, 1, { resume: true })
    expect(connection.isOpen).toBe(true)
    expect(asked).toBe(4)
  })

  it.each(faults)(
    '%s for long gives a sentence without its address, and nobody takes the pod for dead',
    async (_what, fault) => {
      const { engine, id } = await open({ unreachableMs: 300 })
      test.cluster.fault = (call) => (call === 'exec pods' ? fault : undefined)
      const error = await engine.connect(id, 1, { resume: true }).catch((caught) => caught)
      expect(error).toMatchObject({ kind: 'unavailable', code: 'pod_unreachable' })
      expect(error.message).not.toContain('10.9.8.7')
      expect(await engine.inspect(id)).toMatchObject({ running: true })
    }
  )

  it('is down when its pod is deleted: the pod is gone', async () => {
    const { engine, id } = await open()
    const fault = new ApiFailure(404, 'NotFound', 'pod does not exist')
    test.cluster.fault = (call) => {
      if (call !== 'exec pods') return undefined
      const [pod] = test.cluster.pods(NAMESPACE)
      if (pod) test.cluster.objects.delete(pod)
      return fault
    }
    await expect(engine.connect(id, 1)).rejects.toMatchObject({ code: 'container_gone' })
  })

  it('has no process left for a new server: the sandbox counts as crashed', async () => {
    const { engine, id } = await open()
    const streamed = 'error executing command in container: failed to start exec: OCI runtime exec failed'
    test.cluster.fault = (call) => (call === 'exec pods' ? { streamed } : undefined)
    await expect(engine.connect(id, 1)).rejects.toMatchObject({ code: 'server_crashed', details: { exitCode: null } })
  })
})

it('an error of the API server itself names no address of the cluster', async () => {
  const { engine, id } = await open()
  const text = 'Get "https://10.9.8.7:10250/x": dial tcp 10.9.8.7:10250: no such thing'
  test.cluster.fault = () => new ApiFailure(500, 'InternalError', text)
  const error = await engine.inspect(id).catch((caught) => caught)
  expect(error).toMatchObject({ code: 'engine_error', where: expect.stringContaining('10.9.8.7') })
  expect(error.message).not.toContain('10.9.8.7')
})
