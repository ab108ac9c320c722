/** The models that the settings give access to. The gateway loads this only when it first needs a text: it is as large as the rest. */
import type { Settings } from './config/settings.ts'
import { AppError } from './lib/errors.ts'
import type { Logger } from './lib/logger.ts'
import { createModels } from './models/create-models.ts'
import { DEMO_INFO } from './models/demo/demo-info.ts'
import type { Models } from './models/port.ts'

export function openModels(settings: Settings, logger: Logger): Models {
  const access = (apiKey: string | undefined, baseUrl: string | undefined) =>
    apiKey === undefined ? undefined : { apiKey, ...(baseUrl ? { baseUrl } : {}) }
  const compatibleUrl = settings.OPENAI_COMPATIBLE_BASE_URL
  const compatibleKey = settings.OPENAI_COMPATIBLE_API_KEY
  return createModels({
    provider: settings.LLM_PROVIDER === 'claude' ? 'anthropic' : settings.LLM_PROVIDER,
    model: settings.LLM_MODEL,
    anthropic: access(settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL),
    gemini: access(settings.GEMINI_API_KEY, settings.GEMINI_BASE_URL),
    openai: access(settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL),
    openaiCompatible: compatibleUrl
      ? { baseUrl: compatibleUrl, ...(compatibleKey ? { apiKey: compatibleKey } : {}) }
      : undefined,
    logger
  })
}

/** One answer of the default model, as text. The demo model knows no more than the rules do. */
export async function writeText(
  models: Models,
  { system, prompt, maxTokens }: { system: string; prompt: string; maxTokens: number },
  signal: AbortSignal
): Promise<string> {
  const model = await models.resolve(undefined)
  if (model === DEMO_INFO.id) throw new AppError('unavailable', 'model_unknown', 'No model is configured.')
  const messages = [{ role: 'user' as const, text: prompt }]
  const request = { model, system, messages, tools: [], maxOutputTokens: maxTokens, signal }
  for await (const event of models.step(request)) {
    if (event.type === 'done') return event.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  }
  return ''
}
