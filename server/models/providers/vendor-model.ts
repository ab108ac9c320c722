import type { LanguageModelV4, SharedV4ProviderOptions } from '@ai-sdk/provider'
import type { StepRequest } from '../port.ts'
import type { Endpoint } from './endpoint.ts'

export interface VendorModel {
  model: LanguageModelV4
  providerOptions?: SharedV4ProviderOptions
}

/**
 * The vendor's model for one dialect. Its package is loaded on first use: all of them take 10 MB and more than half of the
 * startup. Address and key are always passed, because otherwise the packages would read the environment.
 */
export async function vendorModel(
  endpoint: Endpoint,
  id: string,
  fetch: typeof globalThis.fetch,
  { effort, cacheKey }: Pick<StepRequest, 'effort' | 'cacheKey'> = {}
): Promise<VendorModel> {
  const { provider, url, apiKey = '' } = endpoint
  const thinks = effort !== undefined && effort !== 'off'
  switch (provider) {
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      // Arguments are shown when they are complete. Streaming them would only skip the vendor's check that they are JSON.
      const providerOptions = { anthropic: { toolStreaming: false } }
      return { model: createAnthropic({ baseURL: url, apiKey, fetch })(id), providerOptions }
    }
    case 'gemini': {
      const { createGoogle } = await import('@ai-sdk/google')
      const providerOptions = { google: { thinkingConfig: { includeThoughts: true } } }
      return { model: createGoogle({ baseURL: url, apiKey, fetch })(id), ...(thinks && { providerOptions }) }
    }
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai')
      // Nothing is stored at OpenAI: reasoning comes back encrypted and is kept in our own log.
      const summary = thinks && { reasoningSummary: 'auto' }
      const providerOptions = {
        openai: { store: false, ...summary, ...(cacheKey !== undefined && { promptCacheKey: cacheKey }) }
      }
      return { model: createOpenAI({ baseURL: url, apiKey, fetch }).responses(id), providerOptions }
    }
    case 'openai-compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      const key = apiKey === '' ? {} : { apiKey }
      const options = { name: 'compatible', baseURL: url, fetch, includeUsage: true, ...key }
      return { model: createOpenAICompatible(options)(id) }
    }
  }
}
