/** Counts store operations, checkpoints, sandboxes, model steps, turns and refusals of this instance. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { isAppError } from '../lib/errors.ts'
import type { Operation } from '../lib/observed.ts'
import type { CountRefusal } from '../lib/refusals.ts'

interface ModelStep {
  provider: string
  ms: number
  inputTokens?: number | undefined
  cachedTokens?: number | undefined
  cost?: number | undefined
  currency?: string | undefined
  outputTokens?: number | undefined
  error?: unknown
}

/** Must be quick and must not throw. */
export interface CoreObserver {
  /** An operation of the store; `part` is sessions, events, keys, heads, checkpoints, objects or object-cache. */
  stored(part: string, operation: Operation): void
  /** An operation of the container engine. */
  engine(operation: Operation): void
  modelStep(step: ModelStep): void
  turnEnded(reason: string): void
  modeChanged(mode: string): void
  /** Changes that a person accepted could not be put into the workspace or saved: they `wait`, or were `refused`. */
  changesFailed(outcome: 'wait' | 'refused'): void
  /** The store turned out to have been emptied. */
  storeEmptied(): void
  /** A fork was opened, or could not be. */
  forked(end: { ms: number; error?: unknown }): void
  /** A request that was answered with an error, at one of the faces. */
  refused: CountRefusal
}

const STORE_SECONDS = [0.0005, 0.002, 0.01, 0.05, 0.25, 1, 5]
const SANDBOX_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const MODEL_SECONDS = [0.25, 0.5, 1, 2, 5, 10, 30, 60, 180]

export function meters(registry: Registry, prefix: string) {
  const registers = [registry]
  return {
    count: <L extends string>(name: string, help: string, ...labelNames: L[]) =>
      new Counter({ name: prefix + name, help, labelNames, registers }),
    time: <L extends string>(name: string, help: string, buckets: number[], ...labelNames: L[]) =>
      new Histogram({ name: prefix + name, help, buckets, labelNames, registers })
  }
}

export function coreObserver(registry: Registry, prefix: string): CoreObserver {
  const { count, time } = meters(registry, prefix)
  const storeSeconds = time('store_seconds', 'Duration of store operations.', STORE_SECONDS, 'part')
  const storeErrors = count('store_errors_total', 'Store operations that failed.', 'part', 'operation', 'code')
  const emptied = count('store_emptied_total', 'Times that the store lost its data, with all sessions.')
  const checkpointFailures = count('checkpoint_failures_total', 'Times that files could not be saved.', 'code')
  const objectBytes = count('object_bytes_total', 'Bytes that were sent to the bucket or read from it.', 'operation')
  const cacheUse = count('object_cache_total', 'Objects that were needed: hit or miss in the cache.', 'result')
  const sandboxStarts = count('sandbox_starts_total', 'Sandboxes that were started.')
  const sandboxFailures = count('sandbox_start_failures_total', 'Sandboxes that could not be started.', 'code')
  const sandboxSeconds = time('sandbox_start_seconds', 'Duration of sandbox starts.', SANDBOX_SECONDS)
  const engineErrors = count('engine_errors_total', 'Container engine operations that failed.', 'operation', 'code')
  const turns = count('turns_total', 'Turns that have ended.', 'reason')
  const refusals = count(
    'refusals_total',
    'Requests, connections, commands, turns and calls that were answered with an error.',
    'face',
    'code',
    'reason'
  )
  return {
    stored(part, { name, ms, error, bytes = 0 }) {
      if (part === 'object-cache') return cacheUse.inc({ result: name })
      if (part === 'objects' && error === undefined) objectBytes.inc({ operation: name }, bytes)
      storeSeconds.observe({ part }, ms / 1000)
      if (error === undefined || isExpected(error)) return
      storeErrors.inc({ part, operation: name, code: codeOf(error) })
      if (part === 'checkpoints') checkpointFailures.inc({ code: codeOf(error) })
    },
    engine({ name, ms, error }) {
      if (name === 'create' && error === undefined) {
        sandboxStarts.inc()
        sandboxSeconds.observe(ms / 1000)
      }
      if (error === undefined) return
      if (name === 'create') sandboxFailures.inc({ code: codeOf(error) })
      engineErrors.inc({ operation: name, code: codeOf(error) })
    },
    storeEmptied: () => emptied.inc(),
    ...modelObserver({ count, time }),
    turnEnded: (reason) => turns.inc({ reason }),
    ...effectObserver({ count, time }),
    refused: (face, code, reason) => refusals.inc({ face, code, ...(reason && { reason }) })
  }
}

/** Measures model steps, what they used and what they cost. */
function modelObserver({ count, time }: ReturnType<typeof meters>): Pick<CoreObserver, 'modelStep'> {
  const stepSeconds = time('model_step_seconds', 'Duration of model steps.', MODEL_SECONDS, 'provider')
  const modelErrors = count('model_errors_total', 'Model steps that failed.', 'provider', 'code')
  const modelTokens = count(
    'model_tokens_total',
    'Tokens that models have used; cached ones are also part of the input.',
    'provider',
    'direction'
  )
  const modelCost = count('model_cost_total', 'What models have cost, by MODEL_PRICES.', 'provider', 'currency')
  return {
    modelStep({ provider, ms, inputTokens, cachedTokens, outputTokens, cost, currency, error }) {
      stepSeconds.observe({ provider }, ms / 1000)
      if (inputTokens) modelTokens.inc({ provider, direction: 'input' }, inputTokens)
      if (cachedTokens) modelTokens.inc({ provider, direction: 'cached' }, cachedTokens)
      if (cost && currency) modelCost.inc({ provider, currency }, cost)
      if (outputTokens) modelTokens.inc({ provider, direction: 'output' }, outputTokens)
      if (error !== undefined && !isAppError(error, 'cancelled')) modelErrors.inc({ provider, code: codeOf(error) })
    }
  }
}

/** Counts approval modes, forks and what became of accepted changes. */
function effectObserver({
  count,
  time
}: ReturnType<typeof meters>): Pick<CoreObserver, 'modeChanged' | 'changesFailed' | 'forked'> {
  const modes = count('mode_changes_total', 'Changes of the approval mode.', 'mode')
  const changesFailed = count(
    'accepted_changes_failed_total',
    'Changes that a person accepted, which wait to be saved or were refused.',
    'outcome'
  )
  const forkStarts = count('fork_starts_total', 'Forks that were opened.')
  const forkFailures = count('fork_refusals_total', 'Forks that could not be opened.', 'code')
  const forkSeconds = time('fork_start_seconds', 'Duration of opening a fork.', SANDBOX_SECONDS)
  return {
    modeChanged: (mode) => modes.inc({ mode }),
    changesFailed: (outcome) => changesFailed.inc({ outcome }),
    forked({ ms, error }) {
      if (error !== undefined) return forkFailures.inc({ code: codeOf(error) })
      forkStarts.inc()
      forkSeconds.observe(ms / 1000)
    }
  }
}

export function buildInfo(registry: Registry, prefix: string, version: string): void {
  const help = 'Always 1; the labels say what runs.'
  const labelNames = ['version', 'node']
  new Gauge({ name: `${prefix}build_info`, help, labelNames, registers: [registry] }).set(
    { version, node: process.version },
    1
  )
}

/** Conflicts between instances are part of their protocol, not failures of the store. */
function isExpected(error: unknown): boolean {
  return isAppError(error) && (error.kind === 'conflict' || error.kind === 'not-found')
}

function codeOf(error: unknown): string {
  return isAppError(error) ? error.code : 'internal'
}
