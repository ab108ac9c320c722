import { setTimeout as sleep } from 'node:timers/promises'
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { AppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { plural } from '../../lib/plural.ts'
import { backoffMs } from '../../lib/waiting/backoff.ts'
import { cancelled } from '../../lib/waiting/cancelled.ts'
import type { ModelTimeouts } from '../models-options.ts'
import type { ModelInputs, StepEvent, StepRequest } from '../port.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { type ModelFailure, modelError, modelFailure } from '../providers/model-failure.ts'
import { vendorModel } from '../providers/vendor-model.ts'
import { WatchedFetch } from '../providers/watched-fetch.ts'
import { type ShownFiles, shownFiles } from './prompt-files.ts'
import { type RefusedFiles, saysFilesRefused, withoutFiles } from './refused-files.ts'
import type { RejectedOptions } from './rejected-options.ts'
import { StepCollector } from './step-collector.ts'
import { foldUnopened, splitThinkTags } from './think-tags.ts'
import { toPrompt } from './to-prompt.ts'

/** OpenAI sends about 250 bytes for each token, and models give up to 128,000 tokens. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024
const LONGEST_BACKOFF_MS = 20_000

export interface RemoteStep {
  endpoint: Endpoint
  modelId: string
  request: StepRequest
  timeouts: ModelTimeouts
  maxTries: number
  rejected: RejectedOptions
  /** The kinds of input that the model accepts; undefined if unknown. */
  inputs: ModelInputs | undefined
  refusedFiles: RefusedFiles
  logger: Logger
}

/**
 * Runs one step of a vendor's model. Retries only while nothing of the step has been emitted. An option that the model rejects is
 * left out at the next try, and so are files.
 */
export async function* remoteStep(asked: RemoteStep): AsyncGenerator<StepEvent, void> {
  const { rejected, maxTries, timeouts, logger } = asked
  const { signal, model } = asked.request
  let step = { ...asked, request: rejected.leaveOut(asked.request) }
  let shown = await filesOf(step)
  for (let attempt = 1; ; attempt++) {
    const failure = yield* tryOnce(step, shown)
    if (failure === undefined) return
    const without = rejected.without(step.request, failure.error)
    if (without !== undefined) {
      logger.debug({ model, reason: failure.reason }, 'a model step is repeated without an option')
      step = { ...step, request: without }
      attempt--
      continue
    }
    if (shown.ids.length > 0 && saysFilesRefused(failure.error)) {
      shown = await filesOf(step, shown.ids)
      yield { type: 'retry', attempt: attempt + 1, inMs: 0, reason: withoutFiles(failure.error) }
      continue
    }
    const inMs = failure.afterMs ?? backoffMs(attempt, { firstMs: timeouts.backoffMs, maxMs: LONGEST_BACKOFF_MS })
    const context = { provider: step.endpoint.provider, model: step.modelId, attempt, code: failure.error.code }
    if (!failure.retry || attempt >= maxTries || inMs > timeouts.maxRetryWaitMs) {
      logger.debug({ ...context, reason: failure.reason }, 'a model step failed')
      throw explain(failure, attempt, inMs, timeouts.maxRetryWaitMs)
    }
    logger.debug({ ...context, inMs, reason: failure.reason }, 'a model step is retried')
    yield { type: 'retry', attempt: attempt + 1, inMs, reason: `${step.endpoint.label}: ${failure.reason}.` }
    await sleep(inMs, undefined, { signal }).catch(() => {
      throw cancelled(signal.reason, 'Cancelled while waiting to ask the model again.')
    })
  }
}

/** Returns the failure if a retry would repeat nothing; throws if something was already emitted. */
async function* tryOnce(step: RemoteStep, shown: TriedFiles): AsyncGenerator<StepEvent, ModelFailure | undefined> {
  const { endpoint, modelId, request, timeouts } = step
  const watch = new WatchedFetch({
    label: `${endpoint.label} (${modelId})`,
    idleMs: timeouts.idleMs,
    totalMs: timeouts.stepMs,
    maxBytes: MAX_ANSWER_BYTES,
    signal: request.signal
  })
  const collector = new StepCollector(request)
  let givenOut = false
  let reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart> | undefined
  try {
    reader = (await open(step, shown, watch)).getReader()
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (next.value.type === 'error') throw next.value.error
      const event = collector.accept(next.value)
      if (event === undefined) continue
      givenOut = true
      yield event
    }
    const done = finished(collector, step)
    // Before it is emitted: nobody asks for more after that.
    step.rejected.worked(request)
    step.refusedFiles.add(modelId, shown.suspects)
    yield done
    return undefined
  } catch (error) {
    const failure = modelFailure(watch.failure ?? error, { endpoint, modelId, answered: watch.answered })
    if (givenOut) throw failure.error
    return failure
  } finally {
    watch.close()
    // Not awaited: a forked stream confirms only when every branch is done, and the connection is already closed.
    reader?.cancel().catch(() => {})
  }
}

/** `suspects` are left out to see whether the request works without them. */
async function filesOf(step: RemoteStep, suspects: string[] = []): Promise<ShownFiles & { suspects: string[] }> {
  const { request, endpoint, modelId, inputs, refusedFiles } = step
  const isRefused = (id: string) => suspects.includes(id) || refusedFiles.has(modelId, id)
  return { ...(await shownFiles(request, endpoint.provider, inputs, isRefused)), suspects }
}

type TriedFiles = Awaited<ReturnType<typeof filesOf>>

async function open({ endpoint, modelId, request }: RemoteStep, shown: ShownFiles, watch: WatchedFetch) {
  const { effort, temperature, maxOutputTokens } = request
  const { model, providerOptions } = await vendorModel(endpoint, modelId, watch.fetch, request)
  const { prompt, tools } = toPrompt(request, shown)
  const { stream } = await model.doStream({
    prompt,
    ...(tools.length > 0 && { tools }),
    ...(providerOptions && { providerOptions }),
    ...(effort !== undefined && { reasoning: effort === 'off' ? 'none' : effort }),
    ...(temperature !== undefined && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens })
  })
  return endpoint.provider === 'openai-compatible' ? stream.pipeThrough(splitThinkTags()) : stream
}

function finished(collector: StepCollector, step: RemoteStep): StepEvent {
  const { label } = step.endpoint
  const result = collector.result()
  if (result === undefined) {
    throw new Error('the stream ended before the model did')
  }
  const isLocal = step.endpoint.provider === 'openai-compatible'
  const done = isLocal ? { ...result, parts: foldUnopened(result.parts) } : result
  const said = done.parts.some((part) => part.type === 'tool-call' || (part.type === 'text' && part.text.trim() !== ''))
  if (said || done.finish === 'refusal') return done
  if (collector.stopReason === 'model_context_window_exceeded') {
    throw modelError('model_context_full', `The conversation is too long for ${step.modelId}.`, step)
  }
  const why =
    done.finish === 'length'
      ? 'used up its output tokens before it said anything; raise MAX_OUTPUT_TOKENS'
      : 'sent an empty answer; send the message again, or put it differently'
  throw modelError('model_empty_answer', `${label} (${step.modelId}) ${why}.`, step)
}

function explain(failure: ModelFailure, tries: number, inMs: number, maxWaitMs: number): AppError {
  const { kind, code, message, details } = failure.error
  if (!failure.retry) return failure.error
  const note = inMs > maxWaitMs ? `It asks us to wait ${Math.ceil(inMs / 1000)} s.` : `Tried ${plural(tries, 'time')}.`
  return new AppError(kind, code, `${message} ${note}`, { details: { ...details, tries } })
}
