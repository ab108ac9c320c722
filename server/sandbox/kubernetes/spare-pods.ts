/**
 * Pods that run before anyone needs them, shared by all instances of a deployment. A pod is taken by one atomic change of its labels,
 * with a random claim id. Invariant: a pod is given to one caller at most, also if answers of the API get lost.
 */
import { randomUUID } from 'node:crypto'
import type { V1Pod } from '@kubernetes/client-node'
import { messageOf } from '../../lib/errors.ts'
import type { SandboxOwner } from '../port.ts'
import { wasRefused } from './api/api-error.ts'
import type { PatchStep } from './api/cluster-api.ts'
import { type CreatePodOptions, startPod } from './create-pod.ts'
import { APP, LABEL, STATE, specHash } from './pod-spec.ts'
import { isLive, isRunning } from './pod-state.ts'
import { readBack } from './read-back.ts'

const ROUNDS = 10

export class SparePods {
  readonly #options: CreatePodOptions
  readonly #size: number
  readonly #spec: string
  #filling: Promise<void> | undefined

  constructor(options: CreatePodOptions, size: number) {
    this.#options = options
    this.#size = size
    this.#spec = specHash(options.limits, options.pods)
  }

  /** Takes a spare pod; undefined if there is none. */
  async take(owner: SandboxOwner): Promise<V1Pod | undefined> {
    if (this.#size === 0) return undefined
    for (let round = 0; round < ROUNDS; round++) {
      const spare = (await this.#list(owner.deployment)).filter((pod) => isRunning(pod))
      if (spare.length === 0) return undefined
      for (const pod of shuffled(spare)) {
        const taken = await this.#claim(pod, owner.instance)
        if (taken) return taken
      }
    }
    return undefined
  }

  /** Creates missing ones in the background, one after another. Instances that do this at the same time may create one too many each. */
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

  #list(deployment: string): Promise<V1Pod[]> {
    const labels = [
      [LABEL.app, APP],
      [LABEL.deployment, deployment],
      [LABEL.state, STATE.spare],
      [LABEL.spec, this.#spec]
    ]
    return this.#options.api.listPods(labels.map(([name, value]) => `${name}=${value}`).join(','))
  }

  async #fill(deployment: string): Promise<void> {
    const { api } = this.#options
    while (!this.#options.signal.aborted) {
      const all = await this.#list(deployment)
      // A pod that nobody took ends by itself after half an hour.
      const ended = all.filter((pod) => isLive(pod) && ['Succeeded', 'Failed'].includes(pod.status?.phase ?? ''))
      await Promise.allSettled(ended.map(({ metadata }) => api.deletePod(metadata?.name ?? '', metadata?.uid ?? '')))
      if (all.filter(isLive).length - ended.length >= this.#size) return
      await startPod(this.#options, { [LABEL.deployment]: deployment, [LABEL.state]: STATE.spare })
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
      return wasRefused(error) ? undefined : readBack(api, name, claim)
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
