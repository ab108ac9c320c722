import { isAppError } from '../../lib/errors.ts'
import type { Logger } from '../../lib/logger.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { chatModels } from './chat-models.ts'
import { findModel, type ListedModel, listModels } from './list-models.ts'

/** What one provider offers, or the sentence that says why it can't be used. */
export interface Detected {
  endpoint: Endpoint
  models: ListedModel[]
  reason?: string
}

export interface DetectOptions {
  timeoutMs: number
  /** The configured default model per provider, looked up by name when the list lacks it. */
  wanted: (endpoint: Endpoint) => string | undefined
  logger: Logger
}

/** Asks all providers side by side; one that fails hides no other. */
export async function detect(endpoints: Endpoint[], options: DetectOptions): Promise<Detected[]> {
  return Promise.all(endpoints.map((endpoint) => detectOne(endpoint, options)))
}

async function detectOne(endpoint: Endpoint, { timeoutMs, wanted, logger }: DetectOptions): Promise<Detected> {
  const { label, provider } = endpoint
  const what = `${label} at ${endpoint.shownUrl} to list its models`
  try {
    return await withDeadline({ what, ms: timeoutMs, code: 'model_timeout' }, async (signal) => {
      const models = chatModels(provider, await listModels(endpoint, signal))
      const wish = wanted(endpoint)
      if (wish !== undefined && !models.some(({ id }) => id === wish)) {
        const found = await findModel(endpoint, wish, signal)
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
