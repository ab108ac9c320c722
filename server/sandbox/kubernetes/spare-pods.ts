/**
 * Pods that run before anyone needs them, shared by all instances of a deployment. A pod is taken by one atomic change of its labels,
 * with a random claim id. Invariant: a pod is given to one caller at most, also if answers of the API get lost.
 */
import { randomUUID } from 'node:crypto'
import type { V1Pod } from '@kubernetes/client-node'
import { messageOf } from '../../lib/errors.ts'
import { SingleFlight } from '../../lib/waiting/single-flight.ts'
import type { SandboxOwner } from '../port.ts'
import { statusOf, wasRefused } from './api/api-error.ts'
import type { PatchStep } from './api/cluster-api.ts'
import { type CreatePodOptions, startPod } from './create-pod.ts'
import { APP, LABEL, STATE, specHash } from './pod-spec.ts'
import { isLive, isRunning } from './pod-state.ts'
import { readBack } from './read-back.ts'

const ROUNDS = 10
/** A list this old names pods that others have taken meanwhile. */
const KNOWN_MS = 1000
const MAX_KNOWN = 100
const START_AT_ONCE = 5
/** Another instance has changed or removed the pod. */
const LOST_RACE = new Set<number | undefined>([404, 409, 422])

export class SparePods {
  readonly #options: CreatePodOptions
  readonly #size: number
  readonly #spec: string
  #filling: Promise<void> | undefined
  #known: { pods: V1Pod[]; at: number } = { pods: [], at: 0 }
  readonly #looking = new SingleFlight<boolean>()

  constructor(options: CreatePodOptions, size: number) {
    this.#options = options
    this.#size = size
    this.#spec = specHash(options.limits, options.pods)
  }

  /** Takes a spare pod; undefined if there is none. */
  async take(owner: SandboxOwner): Promise<V1Pod | undefined> {
    if (this.#size === 0) return undefined
    for (let round = 0; round < ROUNDS; round++) {
      // Those who look at the same moment share one list, and none tries a pod that another one here has tried.
      if (this.#isStale && !(await this.#looking.run(() => this.#look(owner.deployment)))) return undefined
      for (let pod = this.#known.pods.pop(); pod; pod = this.#known.pods.pop()) {
        const taken = await this.#claim(pod, owner.instance)
        if (taken) return taken
      }
    }
    return undefined
  }

  get #isStale(): boolean {
    const { pods, at } = this.#known
    return pods.length === 0 || performance.now() - at > KNOWN_MS
  }

  /** Returns false if there is none. */
  async #look(deployment: string): Promise<boolean> {
    const at = performance.now()
    const found = await this.#options.api.listPods(this.#selector(deployment), 'status.phase=Running', MAX_KNOWN)
    const pods = shuffled(found.filter(isRunning))
    this.#known = { pods, at }
    return pods.length > 0
  }

  /** Creates missing ones in the background. Instances that do this at the same time may create one too many each. */
  fill(deployment: string): void {
    if (this.#size === 0 || this.#options.signal.aborted) return
    this.#filling ??= this.#fill(deployment)
      .catch((error) => {
        if (!this.#options.signal.aborted)
          this.#options.logger.warn(`A spare pod could not be created: ${messageOf(error)}`)
      })
      .finally(() => {
        this.#filling = undefined
      })
  }

  /** Call this after the signal has fired. The spare pods that run stay for the other instances. */
  async stop(): Promise<void> {
    await this.#filling
  }

  #selector(deployment: string): string {
    const labels = [
      [LABEL.app, APP],
      [LABEL.deployment, deployment],
      [LABEL.state, STATE.spare],
      [LABEL.spec, this.#spec]
    ]
    return labels.map(([name, value]) => `${name}=${value}`).join(',')
  }

  async #fill(deployment: string): Promise<void> {
    const { api, signal } = this.#options
    const labels = { [LABEL.deployment]: deployment, [LABEL.state]: STATE.spare }
    while (!signal.aborted) {
      const all = await api.listPods(this.#selector(deployment))
      // A pod that nobody took ends by itself after half an hour.
      const ended = all.filter((pod) => isLive(pod) && ['Succeeded', 'Failed'].includes(pod.status?.phase ?? ''))
      await Promise.allSettled(ended.map(({ metadata }) => api.deletePod(metadata?.name ?? '', metadata?.uid ?? '')))
      const missing = this.#size - (all.filter(isLive).length - ended.length)
      if (missing <= 0) return
      const starts = Array.from({ length: Math.min(missing, START_AT_ONCE) }, () => startPod(this.#options, labels))
      const failed = (await Promise.allSettled(starts)).find(({ status }) => status === 'rejected')
      // The next round of the janitor tries again.
      if (failed?.status === 'rejected') throw failed.reason
    }
  }

  /** Returns undefined if another instance has taken it, or if it is gone. */
  async #claim(pod: V1Pod, instance: string): Promise<V1Pod | undefined> {
    const { api } = this.#options
    const { name = '', uid = '', resourceVersion } = pod.metadata ?? {}
    const claim = randomUUID()
    const steps: PatchStep[] = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'test', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'replace', path: label(LABEL.state), value: STATE.used },
      { op: 'add', path: label(LABEL.instance), value: instance },
      { op: 'add', path: label(LABEL.claim), value: claim }
    ]
    try {
      return await api.patchPod(name, steps)
    } catch (error) {
      if (LOST_RACE.has(statusOf(error))) return undefined
      if (wasRefused(error)) throw error
      return readBack(api, name, claim)
    }
  }
}

function label(name: string): string {
  return `/metadata/labels/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** Instances that claim at the same moment should not all begin with the same pod. */
function shuffled<T>(list: T[]): T[] {
  return list
    .map((value) => ({ value, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value)
}
