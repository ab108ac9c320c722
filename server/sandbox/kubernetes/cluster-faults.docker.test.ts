/** Faults of a cluster, on a stand-in for its API server whose pods are containers. */
import { networkInterfaces } from 'node:os'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  localImage,
  NAMESPACE,
  startTestCluster,
  type TestCluster
} from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import type { StandInOptions } from '../../../tests/fixtures/kubernetes/stand-in-cluster.ts'
import { run } from '../sandbox-engine.contract.ts'

let image: string
let test: TestCluster
const lost = { code: 'connection_lost' }

beforeAll(async () => {
  image = await localImage()
})
afterEach(() => test.stop())

async function start(options: StandInOptions = {}) {
  test = await startTestCluster(options, image)
  return test
}

async function open(engine = test.engine()) {
  const id = await engine.create(test.owner)
  return { engine, id, connection: await engine.connect(id, 1) }
}

describe('a pod', () => {
  // The runtime's own profile leaves parts of the kernel open that no namespace covers.
  it('with the profile of this project reaches no such part of the kernel, which is verified from inside', async () => {
    await start()
    const { connection } = await open()
    const strict = { pods: { image, seccompProfile: 'mcp-orchestrator.json' } }
    await expect(test.engine(strict).verifyLimits(connection)).rejects.toMatchObject({ code: 'limits_not_enforced' })
    const closed = await open(test.engine(strict))
    expect((await closed.engine.verifyLimits(closed.connection)).openKernelParts).toEqual([])
  })

  // Checked: without the check, the sandbox is used.
  it('that reaches the network is refused when it is new and when it is claimed, unless the administrator accepts it', async () => {
    const [docker0] = networkInterfaces().docker0 ?? []
    await start({ enforcesPolicies: false, host: docker0?.address ?? '172.17.0.1' })
    const { engine, connection } = await open()
    const open_ = { code: 'network_open', where: expect.stringContaining(`:${test.cluster.port}`) }
    await expect(connection.claim(2)).rejects.toMatchObject(open_)
    await expect(engine.verifyLimits(connection)).rejects.toMatchObject(open_)
    const accepting = await open(test.engine({ checksNetwork: false }))
    await accepting.engine.verifyLimits(accepting.connection)
    await accepting.connection.claim(2)
  })

  it('whose container is killed counts as ended', async () => {
    await start()
    const { engine, id, connection } = await open()
    await test.cluster.docker.getContainer([...test.cluster.containers.values()][0] ?? '').kill()
    await connection.closed
    await expect.poll(() => engine.inspect(id)).toMatchObject({ running: false, exitCode: 137 })
    await expect(engine.connect(id, 2)).rejects.toMatchObject({ code: 'container_not_running' })
  })
})

describe('the API server', () => {
  it('breaks all streams: a running call has an unknown outcome, and the same epoch gets the files again', async () => {
    await start()
    const { engine, id, connection } = await open()
    await run(connection, 'echo kept > file')
    const call = expect(run(connection, 'sleep 300')).rejects.toMatchObject({ ...lost, details: { sent: true } })
    test.cluster.cutStreams()
    await call
    const again = await engine.connect(id, 1, { resume: true })
    expect((await run(again, 'cat file; pgrep -x sleep | wc -l')).stdout).toBe('kept\n0\n')
  })

  it('loses the answer to a create: the pod is found and used, and none is left behind', async () => {
    await start()
    let lostOnce = false
    test.cluster.fault = (call) => {
      if (call !== 'create pods' || lostOnce) return undefined
      lostOnce = true
      return 'lost'
    }
    const engine = test.engine()
    const id = await engine.create(test.owner)
    expect(await engine.inspect(id)).toMatchObject({ running: true })
    expect(test.cluster.pods(NAMESPACE)).toHaveLength(1)
  })

  it('forgets the versions that a watch asks for (410): the pod is read again', async () => {
    await start()
    test.cluster.fault = (call) => {
      if (call === 'watch pods') test.cluster.objects.compact()
      return undefined
    }
    const engine = test.engine()
    expect(await engine.inspect(await engine.create(test.owner))).toMatchObject({ running: true })
  })
})
