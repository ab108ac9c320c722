import type { Endpoint } from '../providers/endpoint.ts'
import type { ListedModel } from './list-models.ts'

/** Names of models that are not for chatting with tools. The proof call has the last word. */
const OTHER_PURPOSE: Record<Endpoint['provider'], RegExp | undefined> = {
  anthropic: undefined,
  gemini: /embed|aqa|imagen|image|veo|lyria|tts|audio|\blive\b|robotics|computer-use|gemma-[123]/i,
  openai:
    /embed|tts|whisper|dall-e|image|audio|realtime|moderation|transcribe|translate|search|instruct|babbage|davinci|ada\b|curie|sora|computer-use|deep-research/i,
  'openai-compatible': /embed|rerank|\bbge\b|whisper|\btts\b|dall-e|stable-diffusion|moderation/i
}

/** Variants that should not be the default: expensive, tiny, special or preview ones, and dated copies. */
const SIDE_VARIANT =
  /preview|experimental|beta|codex|chat-latest|learnlm|gemma|\b(?:exp|pro|nano|lite|mini)\b|\d{4}-\d{2}-\d{2}$/i

/** The models to offer, the best candidate for the default first. */
export function chatModels(provider: Endpoint['provider'], listed: ListedModel[]): ListedModel[] {
  const seen = new Set<string>()
  const offered = listed.filter((model) => {
    if (seen.has(model.id) || OTHER_PURPOSE[provider]?.test(model.id)) return false
    seen.add(model.id)
    return model.methods === undefined || model.methods.includes('generateContent')
  })
  return provider === 'openai-compatible' ? offered : offered.sort(byPreference)
}

function byPreference(a: ListedModel, b: ListedModel): number {
  return (
    Number(SIDE_VARIANT.test(a.id)) - Number(SIDE_VARIANT.test(b.id)) ||
    (b.createdMs ?? 0) - (a.createdMs ?? 0) ||
    version(b.id) - version(a.id)
  )
}

/** The first number in a name ("gemini-2.5-pro": 2.5), for lists without dates. */
function version(id: string): number {
  return Number(id.match(/\d+(?:\.\d+)?/)?.[0] ?? 0)
}
