/**
 * Checks part by part whether this instance can serve. However many requests come, there is one check at a time, at most every two
 * seconds. When a part begins to fail or works again, this is logged once.
 */

import { operatorMessageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'

/** Resolves to details, or throws the reason why this part does not work. */
export type HealthCheck = () => Promise<string>

interface Background {
  start(): void
  stop(): void
}

export interface PartHealth {
  ok: boolean
  detail: string
}

export interface Health {
  ok: boolean
  parts: Record<string, PartHealth>
}

const FRESH_MS = 2000
const CHECK_WITHIN_MS = 8000
/** Check regularly even without requests, so that failures are logged. */
const LOOK_EVERY_MS = 15_000

export class Readiness {
  readonly #checks: Record<string, HealthCheck>
  readonly #logger: Logger
  readonly #background: Background | undefined
  readonly #failing = new Set<string>()
  readonly #outages = new Map<string, number>()
  readonly #worked = new Set<string>()
  #last: { health: Promise<Health>; at: number; isOver: boolean } | undefined
  #timer: NodeJS.Timeout | undefined

  /** `background` looks at a part on its own while this runs. */
  constructor(checks: Record<string, HealthCheck>, logger: Logger, background?: Background) {
    this.#checks = checks
    this.#logger = logger
    this.#background = background
  }

  /** Starts regular checks, which end before the parts are closed. */
  start(isClosing: () => boolean): void {
    this.#background?.start()
    void this.look()
    this.#timer = setInterval(() => {
      if (!isClosing()) void this.look()
    }, LOOK_EVERY_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#background?.stop()
  }

  parts(): string[] {
    return Object.keys(this.#checks)
  }

  isFailing(part: string): boolean {
    return this.#failing.has(part)
  }

  look(): Promise<Health> {
    const last = this.#last
    if (last && (!last.isOver || Date.now() - last.at < FRESH_MS)) return last.health
    const look = { health: this.#look(), at: Date.now(), isOver: false }
    this.#last = look
    void look.health.then(() => {
      look.isOver = true
      look.at = Date.now()
    })
    return look.health
  }

  async #look(): Promise<Health> {
    const entries = await Promise.all(
      Object.entries(this.#checks).map(async ([part, check]) => [part, await this.#checkOne(part, check)] as const)
    )
    const ok = entries.every(([, part]) => part.ok)
    return { ok, parts: Object.fromEntries(entries) }
  }

  async #checkOne(part: string, check: HealthCheck): Promise<PartHealth> {
    try {
      const detail = await withDeadline({ what: `the check of ${part}`, ms: CHECK_WITHIN_MS }, check)
      this.#worked.add(part)
      if (this.#failing.delete(part)) this.#logger.info({ part }, `Ready again: ${part}.`)
      return { ok: true, detail }
    } catch (error) {
      const detail = operatorMessageOf(error)
      if (!this.#failing.has(part)) this.#reportOutage(part, detail)
      return { ok: false, detail }
    }
  }

  #reportOutage(part: string, detail: string): void {
    this.#failing.add(part)
    const outage = (this.#outages.get(part) ?? 0) + 1
    this.#outages.set(part, outage)
    // A part that has never worked is still starting. The number keeps the logger from taking a new outage for a repeated line.
    this.#logger[this.#worked.has(part) ? 'warn' : 'info']({ part, outage }, `Not ready: ${part}: ${detail}`)
  }
}
