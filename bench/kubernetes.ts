/**
 * Sandboxes as pods, on the stand-in for the API server of the tests, never on a cluster. Its pods are containers of this machine, and
 * it answers from this process, so these figures say what our own part costs. A real cluster adds its scheduler, its kubelets and its
 * network.
 */

import type { KubernetesEngine } from '../server/sandbox/kubernetes/kubernetes-engine.ts'
import { LABEL, STATE } from '../server/sandbox/kubernetes/pod-spec.ts'
import type { SandboxEngine } from '../server/sandbox/port.ts'
import { openFresh } from '../server/sessions/sandboxes/warm-pool.ts'
import { addPods, startBareCluster } from '../tests/fixtures/kubernetes/bare-pods.ts'
import {
  LIMITS,
  localImage,
  startTestCluster,
  type TestCluster
} from '../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { round, step, summary, timed } from './statistics.ts'

const COLD = 10
const WARM = 30
const CALLS = 500
const SIZES = [10, 100, 1000]
const FILE = { path: 'bench.txt', content: 'x'.repeat(1000) }
const DEADLINE = { timeoutMs: 10_000 }
const made = { add: () => {}, delete: () => {} }

export async function kubernetesFigures(): Promise<object> {
  const image = await localImage()
  const test = await startTestCluster({}, image)
  try {
    return {
      cluster: 'a stand-in for the API server; no real cluster',
      start: await step('kubernetes: cold and warm, to the first answer', () => startFigures(test)),
      toolCall: await step('kubernetes: a tool call', () => callFigures(test)),
      growth: await step('kubernetes: with 10, 100 and 1,000 pods', growthFigures)
    }
  } finally {
    await test.stop()
  }
}

async function startFigures(test: TestCluster): Promise<object> {
  const engine = test.engine()
  const cold: number[] = []
  const warm: number[] = []
  for (let n = 0; n < WARM; n++) {
    const connection = await fresh(engine, test)
    warm.push(
      await timed(async () => {
        await connection.claim(1)
        await connection.callTool('list_files', {}, DEADLINE)
      })
    )
    await engine.remove(connection.containerId)
    if (n >= COLD) continue
    let id = ''
    cold.push(
      await timed(async () => {
        const opened = await fresh(engine, test)
        id = opened.containerId
        await opened.claim(1)
        await opened.callTool('list_files', {}, DEADLINE)
      })
    )
    await engine.remove(id)
  }
  return { coldMs: summary(cold), warmMs: summary(warm) }
}

const fresh = (engine: SandboxEngine, { owner }: TestCluster) => openFresh(engine, owner, 0, made)

async function callFigures(test: TestCluster): Promise<object> {
  const engine = test.engine()
  const connection = await fresh(engine, test)
  await connection.callTool('write_file', FILE, DEADLINE)
  const times: number[] = []
  for (let n = 0; n < CALLS; n++) {
    times.push(await timed(() => connection.callTool('read_file', { path: FILE.path }, DEADLINE)))
  }
  await engine.remove(connection.containerId)
  return { ms: summary(times) }
}

/** Pods without containers: what counts is how the calls to the API grow. */
async function growthFigures(): Promise<object> {
  const figures: Record<string, object> = {}
  for (const size of SIZES) {
    const test = await startBareCluster()
    // The names of a thousand pods are all that there are by default.
    const limits = { ...LIMITS, uids: { first: 20_000, last: 21_999 } }
    addPods(test, size - 1)
    addPods(test, 1, { state: STATE.spare, first: 30_000 })
    const engine = test.engine({ spares: 1, limits })
    figures[size] = await growthAt(test, engine)
    await test.stop()
  }
  return figures
}

async function growthAt(test: TestCluster, engine: KubernetesEngine): Promise<object> {
  const { deployment } = test.owner
  const bytes = async (job: () => Promise<unknown>) => {
    const before = test.cluster.sentBytes
    const ms = await timed(job)
    return { ms: round(ms), kb: round((test.cluster.sentBytes - before) / 1000) }
  }
  await engine.api.version()
  return {
    janitorList: await bytes(() => engine.list(deployment)),
    janitorLeftovers: await bytes(() => engine.sweep(deployment)),
    wholePods: await bytes(() => engine.api.listPods(LABEL.app)),
    claimOfSpare: await bytes(() => engine.create(test.owner))
  }
}
