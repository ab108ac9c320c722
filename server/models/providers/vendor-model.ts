import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogle } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { Endpoint } from './endpoint.ts'

export interface VendorModel {
  model: LanguageModelV4
  providerOptions?: SharedV4ProviderOptions
}

/**
 * The vendor's model behind one dialect. Address and key are always given, because the vendor packages would else read the
 * environment themselves.
 */
export function vendorModel(endpoint: Endpoint, id: string, fetch: typeof globalThis.fetch): VendorModel {
  const { provider, url, apiKey = '' } = endpoint
  switch (provider) {
    case 'anthropic':
      // Arguments are shown when complete; streaming them early would only skip the vendor's check that they are JSON.
      return {
        model: createAnthropic({ baseURL: url, apiKey, fetch })(id),
        providerOptions: { anthropic: { toolStreaming: false } }
      }
    case 'gemini':
      return { model: createGoogle({ baseURL: url, apiKey, fetch })(id) }
    case 'openai':
      // Nothing is kept at OpenAI: reasoning comes back encrypted and lives in our own log.
      return {
        model: createOpenAI({ baseURL: url, apiKey, fetch }).responses(id),
        providerOptions: { openai: { store: false } }
      }
    case 'openai-compatible':
      return {
        model: createOpenAICompatible({
          name: 'compatible',
          baseURL: url,
          fetch,
          includeUsage: true,
          ...(apiKey === '' ? {} : { apiKey })
        })(id)
      }
  }
}
