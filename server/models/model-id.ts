import { PROVIDER_IDS, type ProviderId } from './models-options.ts'

const ALIASES: Record<string, ProviderId> = { claude: 'anthropic' }

/** `provider/id`, cut at the first slash: ids of compatible servers have slashes of their own. */
export function splitModelId(model: string): { provider: ProviderId; id: string } | undefined {
  const slash = model.indexOf('/')
  const prefix = model.slice(0, Math.max(0, slash))
  const provider = ALIASES[prefix] ?? PROVIDER_IDS.find((known) => known === prefix)
  const id = model.slice(slash + 1)
  return provider === undefined || id === '' ? undefined : { provider, id }
}

/** The configured default as an id of this provider, or undefined when it means another one. */
export function wishFor(
  provider: ProviderId,
  wish: { provider?: ProviderId | undefined; model?: string | undefined }
): string | undefined {
  if (wish.model === undefined || wish.model === '') return undefined
  if (wish.provider !== undefined && wish.provider !== provider) return undefined
  const split = splitModelId(wish.model)
  if (split?.provider === provider) return split.id
  // With the provider named apart, "openai/gpt-oss" may well be an id of a compatible server.
  return split === undefined || wish.provider !== undefined ? wish.model : undefined
}
