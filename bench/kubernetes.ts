/**
 * Sandboxes as pods, on the cluster of TEST_KUBECONFIG, else on the stand-in for the API server of the tests. The pods of the stand-in are
 * containers of this machine, and it answers from this process, so its figures say what our own part costs. A real cluster adds its
 * scheduler, its kubelets and its network. How the calls grow with the number of pods is always measured on the stand-in.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Duplex } from 'node:stream'
import { silentLogger } from '../server/lib/logger.ts'
import type { KubernetesEngine } from '../server/sandbox/kubernetes/kubernetes-engine.ts'
import { LABEL, limitedCommand, STATE } from '../server/sandbox/kubernetes/pod-spec.ts'
import type { SandboxEngine, WorkspaceConnection } from '../server/sandbox/port.ts'
import { openConnection } from '../server/sandbox/workspace/open-connection.ts'
import { openFresh } from '../server/sessions/sandboxes/warm-pool.ts'
import { addPods, startBareCluster } from '../tests/fixtures/kubernetes/bare-pods.ts'
import { type EitherCluster, startEitherCluster } from '../tests/fixtures/kubernetes/either-cluster.ts'
import { LIMITS, type TestCluster } from '../tests/fixtures/kubernetes/kubernetes-sandboxes.ts'
import { realCluster, whichCluster } from '../tests/fixtures/kubernetes/which-cluster.ts'
import { eventually } from '../tests/support/eventually.ts'
import { serve, stopServers } from '../tests/support/serve.ts'
import { round, step, summary, timed } from './statistics.ts'

const COLD = 10
const WARM = 30
const CALLS = 500
const PODS = 100
const PODS_MS = 900_000
const SIZES = [10, 100, 1000]
const FILE = { path: 'bench.txt', content: 'x'.repeat(1000) }
const DEADLINE = { timeoutMs: 10_000 }
const made = { add: () => {}, delete: () => {} }

export async function kubernetesFigures(): Promise<object> {
  const test = await startEitherCluster()
  const isReal = realCluster(process.env) !== undefined
  try {
    return {
      cluster: whichCluster(process.env),
      start: await step('kubernetes: cold and warm, to the first answer', () => startFigures(test)),
      toolCall: await step('kubernetes: a tool call', () => callFigures(test)),
      ...(isReal && { kubectl: await step('kubernetes: the same call through kubectl', () => kubectlFigures(test)) }),
      ...(isReal && { memory: await step('kubernetes: memory with 100 pods', () => memoryFigures(test)) }),
      growth: await step('kubernetes: with 10, 100 and 1,000 pods', growthFigures)
    }
  } finally {
    await test.stop()
  }
}

async function startFigures(test: EitherCluster): Promise<object> {
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

const fresh = (engine: SandboxEngine, { owner }: EitherCluster) => openFresh(engine, owner, 0, made)

async function callFigures(test: EitherCluster): Promise<object> {
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

/** The same server in two pods, through our stream and through `kubectl exec`, in turn. */
async function kubectlFigures(test: EitherCluster): Promise<object> {
  const engine = test.engine()
  const ours = await fresh(engine, test)
  const containerId = await engine.create(test.owner)
  let child: ChildProcess | undefined
  const start = async (cmd: string[]) => {
    const words = ['--kubeconfig', test.kubeconfig, 'exec', '--stdin', containerId.split('@')[0] ?? '', '--']
    const kubectl = spawn('kubectl', [...words, ...limitedCommand(LIMITS, cmd)], { stdio: ['pipe', 'pipe', 'ignore'] })
    child = kubectl
    const stream = Duplex.from({ writable: kubectl.stdin, readable: kubectl.stdout })
    const demux = (sink: { stdout(payload: Buffer): void }) => ({ push: (chunk: Buffer) => sink.stdout(chunk) })
    return { stream, demux, exitCode: async () => (await once(kubectl, 'exit'))[0], isRunning: async () => true }
  }
  const options = { logger: silentLogger, containerId, epoch: 1, resume: false, gvisor: false }
  const theirs = await openConnection({ ...options, start })
  const ms = { ours: [] as number[], kubectl: [] as number[] }
  const read = (connection: WorkspaceConnection) => connection.callTool('read_file', { path: FILE.path }, DEADLINE)
  for (const connection of [ours, theirs]) await connection.callTool('write_file', FILE, DEADLINE)
  for (let n = 0; n < CALLS; n++) {
    ms.ours.push(await timed(() => read(ours)))
    ms.kubectl.push(await timed(() => read(theirs)))
  }
  for (const id of [ours.containerId, containerId]) await engine.remove(id)
  await theirs.close()
  child?.kill()
  return { oursMs: summary(ms.ours), kubectlMs: summary(ms.kubectl) }
}

/** A server without pods, and one that keeps a hundred connected ones. */
async function memoryFigures(test: EitherCluster): Promise<object> {
  const env = { SANDBOX_ENGINE: 'kubernetes', KUBECONFIG: test.kubeconfig, KUBERNETES_IMAGE: test.image }
  const small = { SANDBOX_CPUS: '0.05', SANDBOX_MEMORY_MB: '64', SANDBOX_WORKSPACE_MB: '16' }
  const mb = async (pods: number) => {
    const server = await serve({ ...env, ...small, WARM_POOL_SIZE: String(pods) })
    const isFull = async () => {
      const text = await (await fetch(`${server.url}/metrics`)).text()
      return Number(/warm_sandboxes(?:\{[^}]*\})? (\d+)/.exec(text)?.[1]) >= pods
    }
    await eventually('all pods are ready', isFull, PODS_MS)
    const [, kb = ''] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8')) ?? []
    await server.stop()
    return round(Number(kb) / 1024)
  }
  const [none, all] = [await mb(0), await mb(PODS)]
  await stopServers()
  return { pods: PODS, withoutMb: none, withMb: all, perPodMb: round((all - none) / PODS) }
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
