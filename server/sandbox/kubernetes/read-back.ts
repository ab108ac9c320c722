import { setTimeout as delay } from 'node:timers/promises'
import type { V1Pod } from '@kubernetes/client-node'
import { isAppError } from '../../lib/errors.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { ClusterApi } from './api/cluster-api.ts'
import { LABEL } from './pod-spec.ts'

const TRIES = 5
const WAIT = { firstMs: 100, maxMs: 2000 }

/** After a change whose answer was lost: the pod if the change was made, which its claim id shows. */
export async function readBack(api: ClusterApi, name: string, claim: string): Promise<V1Pod | undefined> {
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    try {
      const pod = await api.getPod(name)
      return pod.metadata?.labels?.[LABEL.claim] === claim ? pod : undefined
    } catch (error) {
      if (isAppError(error, 'container_gone')) return undefined
      await delay(backoffMs(attempt, WAIT))
    }
  }
  // If the change was made, the janitor finds a pod that belongs to no session.
  return undefined
}
