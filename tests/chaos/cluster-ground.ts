/**
 * Sandboxes as pods: on a real cluster if there is one, else on the stand-in. A real one has the faults that its API can make. Others
 * need access to its machines: every executable file in the folder TEST_CLUSTER_FAULTS is one more fault, which must repair itself.
 */
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { V1Pod } from '@kubernetes/client-node'
import { LABEL, STATE } from '../../server/sandbox/kubernetes/pod-spec.ts'
import { podId } from '../../server/sandbox/kubernetes/pod-state.ts'
import { type EitherCluster, startEitherCluster } from '../fixtures/kubernetes/either-cluster.ts'
import type { StandInCluster } from '../fixtures/kubernetes/stand-in-cluster.ts'
import { eventually } from '../support/eventually.ts'
import { on, type PlaceFaults, SERVER_FAULTS, STORE_FAULTS } from './faults.ts'
import type { Random } from './random.ts'
import type { Ground } from './world.ts'

const SCRIPT_MS = 180_000
const RESET_MS = 60_000
const run = promisify(execFile)

export async function startClusterGround(): Promise<Ground> {
  const test = await startEitherCluster()
  const { kubeconfig, image, standIn } = test
  const places = { ...on(test, POD_FAULTS), ...(standIn ? on(standIn, API_FAULTS) : scriptFaults()) }
  return {
    env: {
      ...{ SANDBOX_ENGINE: 'kubernetes', KUBECONFIG: kubeconfig, KUBERNETES_IMAGE: image, KUBERNETES_SPARE_PODS: '1' },
      // Many of them fit on a small node.
      ...{ SANDBOX_CPUS: '0.1', SANDBOX_MEMORY_MB: '128' }
    },
    faults: { ...SERVER_FAULTS, ...places, ...STORE_FAULTS },
    async sandboxes() {
      return (await test.pods())
        .filter(({ metadata }) => metadata?.labels?.[LABEL.state] !== STATE.spare)
        .map((pod) => ({
          id: podId(pod),
          state: pod.status?.phase ?? '',
          instance: pod.metadata?.labels?.[LABEL.instance] ?? ''
        }))
    },
    async reset() {
      const isEmpty = async () => {
        const pods = await test.pods()
        await Promise.allSettled(pods.map((pod) => remove(test, pod)))
        return pods.length === 0
      }
      await eventually('all pods are gone', isEmpty, RESET_MS)
    },
    dispose: () => test.stop()
  }
}

const POD_FAULTS: PlaceFaults<EitherCluster> = {
  'delete a pod': {
    weight: 4,
    async make(test, random) {
      const pod = await somePod(test, random)
      if (pod) await remove(test, pod)
      return pod?.metadata?.name ?? 'none was there'
    }
  },
  /** As when its node is drained. */
  'delete all pods': {
    weight: 1,
    async make(test) {
      const pods = await test.pods()
      await Promise.allSettled(pods.map((pod) => remove(test, pod)))
      return `${pods.length} of them`
    }
  }
}

/** Only the stand-in can be made to do these. */
const API_FAULTS: PlaceFaults<StandInCluster> = {
  'cut the streams': {
    weight: 4,
    async make(cluster) {
      cluster.cutStreams()
      return ''
    }
  },
  'stop the API server': {
    weight: 2,
    async make(cluster, random) {
      const ms = random.between(500, 10_000)
      await cluster.stopListening()
      await delay(ms)
      await cluster.listen()
      return `for ${Math.round(ms)} ms`
    }
  },
  'kill the container of a pod': {
    weight: 2,
    async make({ containers, docker }, random) {
      const ids = [...containers.values()]
      if (ids.length === 0) return 'none was there'
      await docker.getContainer(random.pick(ids)).kill()
      return ''
    }
  },
  /** As when the store of the cluster is away. */
  'lose answers': {
    weight: 3,
    async make(cluster, random) {
      const ms = random.between(500, 5000)
      const chance = random.between(0.2, 1)
      const kind = random.pick(['lost', 'late', 'cut'] as const)
      cluster.fault = () => (random.chance(chance) ? kind : undefined)
      await delay(ms)
      cluster.fault = () => undefined
      return `(${kind}) for ${Math.round(ms)} ms`
    }
  },
  'forget the versions that watches ask for': {
    weight: 2,
    async make(cluster, random) {
      cluster.fault = (call) => {
        if (call === 'watch pods') cluster.objects.compact()
        return undefined
      }
      await delay(random.between(500, 5000))
      cluster.fault = () => undefined
      return ''
    }
  },
  'have no room': {
    weight: 1,
    async make(cluster, random) {
      cluster.unschedulable = '0/1 nodes are available: 1 Insufficient memory.'
      await delay(random.between(500, 5000))
      cluster.unschedulable = undefined
      return ''
    }
  }
}

function scriptFaults() {
  const folder = process.env.TEST_CLUSTER_FAULTS
  const names = folder === undefined ? [] : readdirSync(folder).sort()
  const script = (name: string) => async () => {
    await run(join(folder ?? '', name), [], { timeout: SCRIPT_MS })
    return ''
  }
  return on(undefined, Object.fromEntries(names.map((name) => [name, { weight: 3, make: script(name) }])))
}

async function somePod(test: EitherCluster, random: Random): Promise<V1Pod | undefined> {
  const pods = (await test.pods()).sort((a, b) => podId(a).localeCompare(podId(b)))
  return pods.length === 0 ? undefined : random.pick(pods)
}

function remove(test: EitherCluster, { metadata }: V1Pod): Promise<void> {
  return test.remove(metadata?.name ?? '', metadata?.uid ?? '')
}
