/**
 * The calls to the Kubernetes API that sandboxes need, in one namespace. Every call has a deadline and throws AppError. The Role in
 * deploy/kubernetes allows these calls and no others.
 */
import { setTimeout as delay } from 'node:timers/promises'
import {
  AuthorizationV1Api,
  type ConfigurationOptions,
  CoordinationV1Api,
  CoreV1Api,
  type CoreV1Event,
  type CoreV1EventList,
  type KubeConfig,
  NetworkingV1Api,
  Observable,
  PatchStrategy,
  type RequestContext,
  type ResponseContext,
  type V1Lease,
  type V1NetworkPolicy,
  type V1NetworkPolicyList,
  type V1Pod,
  type V1PodList,
  type V1ResourceQuota,
  type V1ResourceQuotaList,
  type V1SelfSubjectAccessReview,
  VersionApi,
  Watch
} from '@kubernetes/client-node'
import { backoffMs } from '../../../lib/waiting/backoff.ts'
import { withDeadline } from '../../../lib/waiting/deadline.ts'
import { isNodeSilent, podUnreachable, retryAfterMs, statusOf, translateApiError } from './api-error.ts'
import type { ExecStream } from './exec-stream.ts'
import { openExec } from './open-exec.ts'

/** The name of the one container of a pod. */
export const CONTAINER = 'sandbox'
const QUICK_MS = 10_000
const EXEC_MS = 30_000
const PAGE = 500
const MAX_EVENTS = 50
const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
const TOO_MANY = 429
const BUSY = { firstMs: 250, maxMs: 3000 }
const WATCH_SECONDS = 300

export interface Right {
  verb: string
  group: string
  resource: string
  subresource?: string
}

/** Every call that is made in the namespace of the sandboxes. The Role in deploy/kubernetes has the same. */
export const NEEDED_RIGHTS: readonly Right[] = [
  ...['create', 'get', 'list', 'watch', 'patch', 'delete'].map((verb) => ({ verb, group: '', resource: 'pods' })),
  // Since Kubernetes 1.35, exec over WebSocket needs both.
  ...['get', 'create'].map((verb) => ({ verb, group: '', resource: 'pods', subresource: 'exec' })),
  ...['get', 'create', 'update'].map((verb) => ({ verb, group: 'coordination.k8s.io', resource: 'leases' })),
  { verb: 'list', group: '', resource: 'events' },
  { verb: 'list', group: '', resource: 'resourcequotas' },
  { verb: 'list', group: 'networking.k8s.io', resource: 'networkpolicies' }
]

export interface PatchStep {
  op: 'test' | 'add' | 'replace' | 'remove'
  path: string
  value?: string | undefined
}

type Work<T> = (options: ConfigurationOptions) => Promise<T>

export class ClusterApi {
  readonly address: string
  readonly namespace: string
  readonly #config: KubeConfig
  readonly #core: CoreV1Api

  constructor(config: KubeConfig, namespace: string) {
    this.#config = config
    this.#core = config.makeApiClient(CoreV1Api)
    this.address = config.getCurrentCluster()?.server ?? ''
    this.namespace = namespace
  }

  async version(): Promise<string> {
    const api = this.#config.makeApiClient(VersionApi)
    return (await this.#call('say its version', (options) => api.getCode({}, options))).gitVersion
  }

  createPod(body: V1Pod): Promise<V1Pod> {
    const { namespace } = this
    return this.#call('create a pod', (options) => this.#core.createNamespacedPod({ namespace, body }, options))
  }

  getPod(name: string): Promise<V1Pod> {
    const { namespace } = this
    return this.#call('read a pod', (options) => this.#core.readNamespacedPod({ name, namespace }, options))
  }

  patchPod(name: string, body: PatchStep[]): Promise<V1Pod> {
    const { namespace } = this
    const work: Work<V1Pod> = (options) => this.#core.patchNamespacedPod({ name, namespace, body }, options)
    return this.#call('change a pod', work, { 'Content-Type': PatchStrategy.JsonPatch })
  }

  /** The precondition keeps another pod of the same name alive. */
  async deletePod(name: string, uid: string): Promise<void> {
    const { namespace } = this
    const body = { preconditions: { uid }, gracePeriodSeconds: 1 }
    await this.#call('delete a pod', (options) => this.#core.deleteNamespacedPod({ name, namespace, body }, options))
  }

  /** With `max`, some of them at most. */
  async listPods(labelSelector: string, fieldSelector?: string, max = Number.POSITIVE_INFINITY): Promise<V1Pod[]> {
    const { namespace } = this
    const pods: V1Pod[] = []
    for (let from: string | undefined; ; ) {
      const which = { namespace, labelSelector, ...(fieldSelector ? { fieldSelector } : {}) }
      const page = { ...which, limit: Math.min(PAGE, max), ...(from ? { _continue: from } : {}) }
      const work: Work<V1PodList> = (options) => this.#core.listNamespacedPod(page, options)
      const { items, metadata } = await this.#call('list pods', work)
      pods.push(...items)
      from = metadata?._continue || undefined
      if (from === undefined || pods.length >= max) return pods
    }
  }

  /**
   * Pods with their metadata alone, from the memory of the API server: a tenth of the bytes, and no read of its store. The list may be
   * some seconds old.
   */
  async listMetadata(labelSelector: string): Promise<Pick<V1Pod, 'metadata'>[]> {
    const { namespace } = this
    const query = { namespace, labelSelector, resourceVersion: '0' }
    const work: Work<V1PodList> = (options) => this.#core.listNamespacedPod(query, options)
    // If there are none, the list of their metadata is null. That of whole pods never is.
    return (await this.#call('list pods', work, { Accept: METADATA_ONLY })).items ?? []
  }

  /** Calls back with every later state of the pod, and calls `onEnd` if the cluster ends the watch. Returns a function that ends it. */
  async watchPod(name: string, from: string, onChange: (pod: V1Pod) => void, onEnd: () => void): Promise<() => void> {
    const query = { fieldSelector: `metadata.name=${name}`, resourceVersion: from, timeoutSeconds: WATCH_SECONDS }
    const onEvent = (type: string, pod: V1Pod) => (type === 'ERROR' || type === 'DELETED' ? onEnd() : onChange(pod))
    const path = `/api/v1/namespaces/${this.namespace}/pods`
    const watching = await new Watch(this.#config).watch(path, query, onEvent, onEnd)
    return () => watching.abort()
  }

  exec(pod: string, command: string[]): Promise<ExecStream> {
    const to = 'start a server in a pod'
    const { address, namespace } = this
    return withDeadline({ what: `the Kubernetes API to ${to}`, ms: EXEC_MS, code: 'engine_timeout' }, (signal) =>
      unlessBusy(() => openExec(this.#config, { namespace, pod, container: CONTAINER, command }, signal), signal).catch(
        (error) => {
          throw isNodeSilent(error) ? podUnreachable(error) : translateApiError(error, { address, namespace, to })
        }
      )
    )
  }

  async may(right: Right): Promise<boolean> {
    const api = this.#config.makeApiClient(AuthorizationV1Api)
    const body = { spec: { resourceAttributes: { namespace: this.namespace, ...right } } }
    const work: Work<V1SelfSubjectAccessReview> = (options) => api.createSelfSubjectAccessReview({ body }, options)
    return (await this.#call('say what we may do', work)).status?.allowed ?? false
  }

  /** Returns the events of an object, in no order. */
  async events(uid: string): Promise<CoreV1Event[]> {
    const { namespace } = this
    const query = { namespace, fieldSelector: `involvedObject.uid=${uid}`, limit: MAX_EVENTS }
    const work: Work<CoreV1EventList> = (options) => this.#core.listNamespacedEvent(query, options)
    return (await this.#call('list events', work)).items
  }

  async policies(): Promise<V1NetworkPolicy[]> {
    const { namespace } = this
    const api = this.#config.makeApiClient(NetworkingV1Api)
    const work: Work<V1NetworkPolicyList> = (options) => api.listNamespacedNetworkPolicy({ namespace }, options)
    return (await this.#call('list network policies', work)).items
  }

  async quotas(): Promise<V1ResourceQuota[]> {
    const { namespace } = this
    const work: Work<V1ResourceQuotaList> = (options) => this.#core.listNamespacedResourceQuota({ namespace }, options)
    return (await this.#call('list quotas', work)).items
  }

  lease(name: string): Promise<V1Lease> {
    const { namespace } = this
    const api = this.#config.makeApiClient(CoordinationV1Api)
    return this.#call('read a lease', (options) => api.readNamespacedLease({ name, namespace }, options))
  }

  createLease(body: V1Lease): Promise<V1Lease> {
    const { namespace } = this
    const api = this.#config.makeApiClient(CoordinationV1Api)
    return this.#call('create a lease', (options) => api.createNamespacedLease({ namespace, body }, options))
  }

  /** Fails if the lease has another version than this one by now. */
  replaceLease(body: V1Lease): Promise<V1Lease> {
    const { namespace } = this
    const api = this.#config.makeApiClient(CoordinationV1Api)
    const name = body.metadata?.name ?? ''
    return this.#call('renew a lease', (options) => api.replaceNamespacedLease({ name, namespace, body }, options))
  }

  #call<T>(to: string, work: Work<T>, headers: Record<string, string> = {}): Promise<T> {
    const { address, namespace } = this
    const deadline = { what: `the Kubernetes API to ${to}`, ms: QUICK_MS, code: 'engine_timeout' }
    return withDeadline(deadline, async (signal) => {
      try {
        return await unlessBusy(() => work(withSignal(signal, headers)), signal)
      } catch (error) {
        throw translateApiError(error, { address, namespace, to })
      }
    })
  }
}

/** An API server that is busy carries out nothing, and says when to ask again. */
async function unlessBusy<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (statusOf(error) !== TOO_MANY) throw error
      await delay(retryAfterMs(error) ?? backoffMs(attempt, BUSY), undefined, { signal })
    }
  }
}

function withSignal(signal: AbortSignal, headers: Record<string, string>): ConfigurationOptions {
  const same = <T>(value: T) => new Observable(Promise.resolve(value))
  const pre = (request: RequestContext) => {
    request.setSignal(signal)
    for (const [name, value] of Object.entries(headers)) request.setHeaderParam(name, value)
    return same(request)
  }
  return {
    middleware: [{ pre, post: (response: ResponseContext) => same(response) }],
    middlewareMergeStrategy: 'append'
  }
}
