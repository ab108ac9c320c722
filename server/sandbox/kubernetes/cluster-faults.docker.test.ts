/** Faults of a cluster, on a stand-in for its API server whose pods are containers. */
import { networkInterfaces } from 'node:os'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  LIMITS,
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
  it('is verified from inside: limits, restrictions and the closed network', async () => {
    await start()
    const { engine, connection } = await open()
    const seen = await engine.verifyLimits(connection)
    expect(seen).toMatchObject({
      capabilities: '0',
      noNewPrivileges: true,
      seccomp: 2,
      rootWritable: false,
      processLimit: 128
    })
    expect((await run(connection, 'env')).stdout).not.toContain('KUBERNETES')
    expect((await run(connection, 'ulimit -u; ulimit -c; ulimit -n')).stdout).toBe('128\n0\n4096\n')
    for (const change of [{ memoryMb: 256 }, { pids: 64 }, { cpus: 0.25 }, { workspaceMb: 64 }]) {
      const stricter = test.engine({ limits: { ...LIMITS, ...change } })
      await expect(stricter.verifyLimits(connection)).rejects.toMatchObject({ code: 'limits_not_enforced' })
    }
    // The profile of this project leaves no part of the kernel open that no namespace covers; the runtime's own does.
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

  it('that is deleted ends its calls with an unknown outcome, and is gone', async () => {
    await start()
    const { engine, id, connection } = await open()
    const call = expect(run(connection, 'sleep 300')).rejects.toMatchObject({ ...lost, details: { sent: true } })
    await test.engine().remove(id)
    await call
    expect(await engine.inspect(id)).toBeNull()
    await expect(engine.connect(id, 2)).rejects.toMatchObject({ code: 'container_gone' })
    expect(await engine.remove(id)).toBe(false)
  })

  it('whose container is killed counts as ended', async () => {
    await start()
    const { engine, id, connection } = await open()
    await test.cluster.docker.getContainer([...test.cluster.containers.values()][0] ?? '').kill()
    await connection.closed
    await expect.poll(() => engine.inspect(id)).toMatchObject({ running: false, exitCode: 137 })
    await expect(engine.connect(id, 2)).rejects.toMatchObject({ code: 'container_not_running' })
  })

  it('is not confused with a later one of the same name', async () => {
    await start()
    const uids = { first: 20_000, last: 20_000 }
    const engine = test.engine({ limits: { ...LIMITS, uids } })
    const first = await engine.create(test.owner)
    await expect(engine.create(test.owner)).rejects.toMatchObject({ code: 'sandbox_uids_used_up' })
    await engine.remove(first)
    await expect.poll(() => test.cluster.pods(NAMESPACE)).toEqual([])
    const second = await engine.create(test.owner)
    expect(second.split('@')[0]).toBe(first.split('@')[0])
    expect(await engine.inspect(first)).toBeNull()
    expect(await engine.remove(first)).toBe(false)
    expect(await engine.inspect(second)).toMatchObject({ running: true })
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
