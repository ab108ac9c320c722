/**
 * Keeps a second instance without Redis out of the namespace. Each would have sessions of its own, and a Service would send a person now
 * to the one and now to the other. Invariant: of the instances that ask, one at most creates pods.
 */
import { V1MicroTime } from '@kubernetes/client-node'
import { AppError, messageOf } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { statusOf } from './api/api-error.ts'
import type { ClusterApi } from './api/cluster-api.ts'

const NAME = 'mcp-orchestrator'
const SECONDS = 30
const RENEW_MS = 10_000
const GONE = 404
const CONFLICT = 409

export interface NamespaceLeaseOptions {
  api: ClusterApi
  /** The same after a restart, so that an instance need not wait for itself. */
  holder: string
  logger: Logger
  seconds?: number
}

export class NamespaceLease {
  readonly #options: NamespaceLeaseOptions
  readonly #ms: number
  #heldUntil = 0
  /** The last value of another instance, and the time when we first saw it: clocks of other machines prove nothing. */
  #seen = { version: '', at: 0 }
  #renewing: NodeJS.Timeout | undefined

  constructor(options: NamespaceLeaseOptions) {
    this.#options = options
    this.#ms = (options.seconds ?? SECONDS) * 1000
  }

  get isHeld(): boolean {
    return performance.now() < this.#heldUntil
  }

  /** Throws `namespace_taken` while another instance has it. */
  async take(): Promise<void> {
    if (this.isHeld) return
    await this.#write()
    this.#renewing ??= setInterval(() => void this.#renew(), Math.min(RENEW_MS, this.#ms / 3)).unref()
  }

  /** Lets the next instance begin at once. */
  async release(): Promise<void> {
    clearInterval(this.#renewing)
    if (!this.isHeld) return
    this.#heldUntil = 0
    const lease = await this.#options.api.lease(NAME)
    if (lease.spec?.holderIdentity === this.#options.holder)
      await this.#options.api.replaceLease({ ...lease, spec: { ...lease.spec, holderIdentity: '' } })
  }

  async #renew(): Promise<void> {
    try {
      await this.#write()
    } catch (error) {
      this.#options.logger.warn({ err: error }, `The namespace of the sandboxes: ${messageOf(error)}`)
    }
  }

  /** Counts from before the request, so that it never lasts longer here than in the cluster. */
  async #write(): Promise<void> {
    const { api, holder } = this.#options
    const until = performance.now() + this.#ms
    const spec = {
      holderIdentity: holder,
      leaseDurationSeconds: Math.ceil(this.#ms / 1000),
      renewTime: new V1MicroTime()
    }
    try {
      const lease = await api.lease(NAME).catch((error) => {
        if (statusOf(error) === GONE) return undefined
        throw error
      })
      if (lease && !this.#mayReplace(lease.spec?.holderIdentity, lease.metadata?.resourceVersion)) throw taken()
      // The version in it makes the change fail if another instance was faster.
      if (lease) await api.replaceLease({ ...lease, spec: { ...lease.spec, ...spec } })
      else await api.createLease({ metadata: { name: NAME }, spec })
      this.#heldUntil = until
    } catch (error) {
      if (statusOf(error) === CONFLICT) this.#heldUntil = 0
      throw statusOf(error) === CONFLICT ? taken() : error
    }
  }

  #mayReplace(holder = '', version = ''): boolean {
    if (holder === '' || holder === this.#options.holder) return true
    this.#heldUntil = 0
    if (this.#seen.version !== version) this.#seen = { version, at: performance.now() }
    return performance.now() - this.#seen.at > this.#ms
  }
}

function taken(): AppError {
  const message =
    'Another instance without REDIS_URL uses the namespace of the sandboxes: set REDIS_URL and CHECKPOINT_STORE for both, or use one instance.'
  return new AppError('conflict', 'namespace_taken', message)
}
