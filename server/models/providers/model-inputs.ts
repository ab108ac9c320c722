import type { ProviderId } from '../models-options.ts'
import type { ModelInputs } from '../port.ts'

const ALL: ModelInputs = { images: true, pdfs: true }
const NONE: ModelInputs = { images: false, pdfs: false }

/** Old models that read only text; every later chat model of these vendors also takes images and PDFs. */
const TEXT_ONLY = {
  anthropic: /^claude-(2|instant)/,
  openai: /^(gpt-3\.5|gpt-4(-\d|-32k|-turbo-preview|$)|o1-(mini|preview)|o3-mini|gpt-oss)/
}

/**
 * Whether a model can look at images and PDFs. Compatible servers may list the inputs of a model; otherwise nobody knows
 * (undefined). PDFs are not part of their dialect.
 */
export function modelInputs(provider: ProviderId, id: string, listed?: readonly string[]): ModelInputs | undefined {
  if (provider === 'demo') return NONE
  if (provider === 'gemini') return id.startsWith('gemma') ? { images: /gemma-(3|4)/.test(id), pdfs: false } : ALL
  if (provider === 'openai-compatible') return listed && { images: listed.includes('image'), pdfs: false }
  return TEXT_ONLY[provider].test(id) ? NONE : ALL
}
