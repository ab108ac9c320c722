/**
 * Creates a pod with its own user id. The pod's name reserves the id, as a container's name does on Docker: names are unique in the
 * namespace.
 */
import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { CoreV1Event, V1Pod } from '@kubernetes/client-node'
import { AppError, isAppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import type { SandboxLimits } from '../port.ts'
import { DEFAULT_UIDS, type UidRange } from '../uid-range.ts'
import { checkAdmitted } from './admitted-pod.ts'
import { statusOf, wasRefused } from './api/api-error.ts'
import type { ClusterApi } from './api/cluster-api.ts'
import { LABEL, type PodOptions, podOf } from './pod-spec.ts'
import { isRunning, whyHopeless, whyPending } from './pod-state.ts'
import { readBack } from './read-back.ts'

const NAME = 'mcp-sandbox-'
const MAX_TRIES = 256
const GUESSES = 3
const MAX_WHERE_CHARS = 500
const CONFLICT = 409
const QUOTA_TRIES = 8
const QUOTA_CONFLICT = { firstMs: 50, maxMs: 1000 }
const LOOK_AGAIN = { firstMs: 100, maxMs: 3000 }

export interface CreatePodOptions {
  api: ClusterApi
  limits: SandboxLimits
  pods: PodOptions
  /** How long a pod may take until it runs. */
  startMs: number
  logger: Logger
  /** Fires when nobody waits for the pod any more. */
  signal: AbortSignal
  /** How long the pod lives without a sign of life; defaults to that of a session's sandbox. */
  idleSeconds?: number | undefined
}

/** Creates a pod and waits until it runs. Leaves nothing behind when it fails. */
export async function startPod(options: CreatePodOptions, labels: Record<string, string>): Promise<V1Pod> {
  const { asked, created } = await createPod(options, labels)
  try {
    checkAdmitted(asked, created)
    return await untilRunning(options, created)
  } catch (error) {
    await remove(options, created)
    throw error
  }
}

interface NewPod {
  asked: V1Pod
  created: V1Pod
}

async function createPod(options: CreatePodOptions, labels: Record<string, string>): Promise<NewPod> {
  const { uids = DEFAULT_UIDS } = options.limits
  const tried = new Set<number>()
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    // Guessing is the fastest way while most names are free.
    if (tries === GUESSES) for (const uid of await usedIds(options.api)) tried.add(uid)
    const uid = untried(uids, tried)
    if (uid === undefined) break
    options.signal.throwIfAborted()
    tried.add(uid)
    const made = await tryCreate(options, labels, uid)
    if (made !== null) return made
  }
  const message = `No user id of ${uids.first}-${uids.last} is free in the namespace: close some sessions, or set SANDBOX_UIDS to a wider range.`
  throw new AppError('unavailable', 'sandbox_uids_used_up', message)
}

function untried({ first, last }: UidRange, tried: ReadonlySet<number>): number | undefined {
  const uid = randomInt(first, last + 1)
  if (!tried.has(uid)) return uid
  const free = Array.from({ length: last - first + 1 }, (_, n) => first + n).filter((each) => !tried.has(each))
  return free[randomInt(Math.max(free.length, 1))]
}

async function usedIds(api: ClusterApi): Promise<number[]> {
  const pods = await api.listMetadata(LABEL.app)
  return pods.map(({ metadata }) => Number(metadata?.name?.slice(NAME.length)))
}

/** Returns null if another pod has this name. */
async function tryCreate(
  options: CreatePodOptions,
  labels: Record<string, string>,
  uid: number
): Promise<NewPod | null> {
  const { api, limits, pods, idleSeconds } = options
  const name = `${NAME}${uid}`
  const claim = randomUUID()
  const asked = podOf({ name, uid, limits, options: pods, idleSeconds, labels: { ...labels, [LABEL.claim]: claim } })
  try {
    return { asked, created: await counted(options, asked) }
  } catch (error) {
    if (statusOf(error) === CONFLICT && !isQuotaConflict(error)) return null
    if (wasRefused(error)) throw error
    const found = await readBack(api, name, claim)
    if (found) return { asked, created: found }
    throw error
  }
}

/** Pods that are counted against the quota at the same moment get in each other's way. The name is free all the same. */
async function counted({ api, signal }: CreatePodOptions, asked: V1Pod): Promise<V1Pod> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await api.createPod(asked)
    } catch (error) {
      if (!isQuotaConflict(error) || attempt === QUOTA_TRIES) throw error
      await delay(backoffMs(attempt, QUOTA_CONFLICT), undefined, { signal })
    }
  }
}

function isQuotaConflict(error: unknown): boolean {
  return isAppError(error) && error.details.status === CONFLICT && error.details.reason === 'Conflict'
}

async function remove({ api, logger }: CreatePodOptions, { metadata }: V1Pod): Promise<void> {
  const { name = '', uid = '' } = metadata ?? {}
  await api.deletePod(name, uid).catch((error) => {
    if (!isAppError(error, 'container_gone')) logger.warn({ err: error, name }, 'pod left behind')
  })
}

/** An API server that is away for a while is no reason to give the pod up. */
async function untilRunning({ api, startMs, signal }: CreatePodOptions, created: V1Pod): Promise<V1Pod> {
  let pod = created
  let failures = 0
  const until = performance.now() + startMs
  while (!isRunning(pod)) {
    signal.throwIfAborted()
    const hopeless = whyHopeless(pod)
    if (hopeless) throw hopeless
    const left = until - performance.now()
    if (left <= 0) throw await explained(api, pod, whyPending(pod))
    const next = await nextState(api, pod, left, signal)
    if (next) failures = 0
    else {
      failures += 1
      // The wait ends with the signal, which is looked at next.
      await delay(Math.min(left, backoffMs(failures, LOOK_AGAIN)), undefined, { signal }).catch(() => {})
    }
    signal.throwIfAborted()
    pod = next ?? (await lookAgain(api, pod, performance.now() < until))
    if (pod.metadata?.uid !== created.metadata?.uid) throw deletedMeanwhile()
  }
  return pod
}

/** Networks, volumes and images that a node can't set up are in the events of the pod only. */
async function explained(api: ClusterApi, { metadata }: V1Pod, error: AppError): Promise<AppError> {
  if (error.code !== 'engine_timeout') return error
  const events = await api.events(metadata?.uid ?? '').catch(() => [])
  const [last] = events.filter(({ type }) => type === 'Warning').sort((a, b) => timeOf(b) - timeOf(a))
  if (!last) return error
  const where = `${last.reason}: ${last.message ?? ''}`.slice(0, MAX_WHERE_CHARS)
  return new AppError(error.kind, error.code, `${error.message} The cluster says: ${last.reason}.`, { where })
}

function timeOf({ lastTimestamp, eventTime, metadata }: CoreV1Event): number {
  return Number(lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? 0)
}

async function lookAgain(api: ClusterApi, pod: V1Pod, mayWait: boolean): Promise<V1Pod> {
  try {
    return await api.getPod(pod.metadata?.name ?? '')
  } catch (error) {
    if (isAppError(error, 'container_gone')) throw deletedMeanwhile()
    if (mayWait && !wasRefused(error)) return pod
    throw error
  }
}

function deletedMeanwhile(): AppError {
  return new AppError('not-found', 'container_gone', 'The pod was deleted while it started.')
}

/** Waits for a change. Returns undefined if the watch ended, for example because the version is too old for the cluster (410). */
async function nextState(
  api: ClusterApi,
  { metadata }: V1Pod,
  ms: number,
  signal: AbortSignal
): Promise<V1Pod | undefined> {
  const { promise, resolve } = Promise.withResolvers<V1Pod | undefined>()
  const giveUp = () => resolve(undefined)
  const timer = setTimeout(giveUp, ms)
  signal.addEventListener('abort', giveUp, { once: true })
  const name = metadata?.name ?? ''
  const watching = api.watchPod(name, metadata?.resourceVersion ?? '', resolve, () => resolve(undefined))
  // It resolves with the first answer of the API server, which may never come.
  watching.catch(() => resolve(undefined))
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
    watching.then(
      (end) => end(),
      () => {}
    )
  }
}
