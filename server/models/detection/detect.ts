import { isAppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { chatModels } from './chat-models.ts'
import { findModel, type ListedModel, listModels } from './list-models.ts'

/** The models of one provider, or the reason why it can't be used. */
export interface Detected {
  endpoint: Endpoint
  models: ListedModel[]
  reason?: string
}

export interface DetectOptions {
  timeoutMs: number
  /** The configured default model of a provider, looked up by name if the list lacks it. */
  wanted: (endpoint: Endpoint) => string | undefined
  logger: Logger
}

/** Asks all providers in parallel; one that fails does not hide the others. */
export async function detect(endpoints: Endpoint[], options: DetectOptions): Promise<Detected[]> {
  return Promise.all(endpoints.map((endpoint) => detectOne(endpoint, options)))
}

async function detectOne(endpoint: Endpoint, { timeoutMs, wanted, logger }: DetectOptions): Promise<Detected> {
  const { label, provider } = endpoint
  const what = `${label} at ${endpoint.shownUrl} to list its models`
  try {
    return await withDeadline({ what, ms: timeoutMs, code: 'model_timeout' }, async (signal) => {
      const models = chatModels(provider, await listModels(endpoint, signal))
      const requested = wanted(endpoint)
      if (requested !== undefined && !models.some(({ id }) => id === requested)) {
        const found = await findModel(endpoint, requested, signal)
        if (found !== undefined) models.push(found)
      }
      if (models.length > 0) return { endpoint, models }
      return { endpoint, models, reason: `${label} offers no model that can chat with tools.` }
    })
  } catch (error) {
    if (!isAppError(error)) throw error
    logger.warn({ provider, code: error.code, reason: error.message }, 'a model provider is not usable')
    return { endpoint, models: [], reason: error.message }
  }
}
