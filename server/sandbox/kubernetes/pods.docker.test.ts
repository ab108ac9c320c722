/** Pods as their cluster runs them: on a real cluster if there is one. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type EitherCluster, startEitherCluster } from '../../../tests/fixtures/kubernetes/either-cluster.ts'
import { LIMITS } from '../../../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { realCluster, whichCluster } from '../../../tests/fixtures/kubernetes/which-cluster.ts'
import { run } from '../sandbox-engine.contract.ts'
import { LABEL, STATE } from './pod-spec.ts'
import { podId } from './pod-state.ts'

const isReal = realCluster(process.env) !== undefined
const lost = { code: 'connection_lost' }
/** Many of them fit on a node. */
const SMALL = { ...LIMITS, cpus: 0.01, memoryMb: 64, workspaceMb: 16 }

let test: EitherCluster
beforeEach(async () => {
  test = await startEitherCluster()
})
afterEach(() => test.stop())

async function open(engine = test.engine()) {
  const id = await engine.create(test.owner)
  return { engine, id, connection: await engine.connect(id, 1) }
}

describe(`a pod, on ${whichCluster(process.env)}`, () => {
  it('is verified from inside: limits, restrictions and the closed network', async () => {
    const { engine, connection } = await open()
    const seen = await engine.verifyLimits(connection)
    expect(seen).toMatchObject({
      capabilities: '0',
      noNewPrivileges: true,
      seccomp: 2,
      rootWritable: false,
      processLimit: 128
    })
    await connection.claim(2)
    expect((await run(connection, 'env')).stdout).not.toContain('KUBERNETES')
    expect((await run(connection, 'ulimit -u; ulimit -c; ulimit -n')).stdout).toBe('128\n0\n4096\n')
    expect((await run(connection, 'ls /var/run/secrets/kubernetes.io')).exitCode).not.toBe(0)
    for (const change of [{ memoryMb: 256 }, { pids: 64 }, { cpus: 0.25 }, { workspaceMb: 64 }]) {
      const stricter = test.engine({ limits: { ...LIMITS, ...change } })
      await expect(stricter.verifyLimits(connection)).rejects.toMatchObject({ code: 'limits_not_enforced' })
    }
  })

  it('that is deleted ends its calls with an unknown outcome, and is gone', async () => {
    const { engine, id, connection } = await open()
    const call = expect(run(connection, 'sleep 300')).rejects.toMatchObject({ ...lost, details: { sent: true } })
    await test.engine().remove(id)
    await call
    expect(await engine.inspect(id)).toBeNull()
    await expect(engine.connect(id, 2)).rejects.toMatchObject({ code: 'container_gone' })
    expect(await engine.remove(id)).toBe(false)
  })

  it('whose first process ends counts as ended', async () => {
    const { engine, id, connection } = await open()
    await run(connection, 'kill -TERM 1').catch(() => {})
    await connection.closed
    await expect.poll(() => engine.inspect(id)).toMatchObject({ running: false })
    await expect(engine.connect(id, 2)).rejects.toMatchObject({ code: 'container_not_running' })
  })

  it('is not confused with a later one of the same name', async () => {
    const uids = { first: 20_000, last: 20_000 }
    const engine = test.engine({ limits: { ...LIMITS, uids } })
    const first = await engine.create(test.owner)
    await expect(engine.create(test.owner)).rejects.toMatchObject({ code: 'sandbox_uids_used_up' })
    await engine.remove(first)
    await expect.poll(() => engine.api.listMetadata(LABEL.app)).toEqual([])
    const second = await engine.create(test.owner)
    expect(second.split('@')[0]).toBe(first.split('@')[0])
    expect(await engine.inspect(first)).toBeNull()
    expect(await engine.remove(first)).toBe(false)
    expect(await engine.inspect(second)).toMatchObject({ running: true })
  })
})

it('spare pods are given to one of three instances each, many at once, and none is left over', {
  timeout: 900_000
}, async () => {
  // On the stand-in, all of them are on this machine's engine.
  const count = isReal ? 100 : 6
  const running = async (state: string) =>
    (await test.pods()).filter(
      ({ metadata, status }) => status?.phase === 'Running' && metadata?.labels?.[LABEL.state] === state
    )
  const filler = test.engine({ spares: count, limits: SMALL })
  await filler.sweep(test.owner.deployment)
  await expect.poll(() => running(STATE.spare), { timeout: 800_000, interval: 1000 }).toHaveLength(count)
  await filler.close()
  const instances = ['one', 'two', 'three'].map((instance) => ({
    engine: test.engine({ spares: 1, limits: SMALL }),
    owner: { ...test.owner, instance }
  }))
  const claims = Array.from({ length: count }, (_, n) => instances[n % 3]).map((each) =>
    each?.engine.create(each.owner)
  )
  const ids = await Promise.all(claims)
  for (const { engine } of instances) await engine.close()
  expect(new Set(ids).size).toBe(count)
  expect((await running(STATE.used)).map(podId).sort()).toEqual([...ids].sort())
})
