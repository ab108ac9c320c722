import type { ModelsOptions } from '../models/models-options.ts'
import type { Settings } from './settings.ts'

/** The providers that the settings have keys or addresses for, and the default model. */
export function modelAccess(settings: Settings): Omit<ModelsOptions, 'logger'> {
  const access = (apiKey: string | undefined, baseUrl: string | undefined) =>
    apiKey === undefined ? undefined : { apiKey, ...(baseUrl ? { baseUrl } : {}) }
  const compatibleUrl = settings.OPENAI_COMPATIBLE_BASE_URL
  const compatibleKey = settings.OPENAI_COMPATIBLE_API_KEY
  return {
    provider: settings.LLM_PROVIDER === 'claude' ? 'anthropic' : settings.LLM_PROVIDER,
    model: settings.LLM_MODEL,
    anthropic: access(settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL),
    gemini: access(settings.GEMINI_API_KEY, settings.GEMINI_BASE_URL),
    openai: access(settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL),
    openaiCompatible: compatibleUrl
      ? { baseUrl: compatibleUrl, ...(compatibleKey ? { apiKey: compatibleKey } : {}) }
      : undefined
  }
}
