import { PROVIDER_IDS, type ProviderId } from './models-options.ts'

const ALIASES: Record<string, ProviderId> = { claude: 'anthropic' }

/** Splits `provider/id` at the first slash: ids of compatible servers may contain slashes. */
export function splitModelId(model: string): { provider: ProviderId; id: string } | undefined {
  const slash = model.indexOf('/')
  const prefix = model.slice(0, Math.max(0, slash))
  const provider = ALIASES[prefix] ?? PROVIDER_IDS.find((known) => known === prefix)
  const id = model.slice(slash + 1)
  return provider === undefined || id === '' ? undefined : { provider, id }
}

/** The configured default as an id of this provider, or undefined if it belongs to another one. */
export function configuredModelOf(
  provider: ProviderId,
  requested: { provider?: ProviderId | undefined; model?: string | undefined }
): string | undefined {
  if (requested.model === undefined || requested.model === '') return undefined
  if (requested.provider !== undefined && requested.provider !== provider) return undefined
  const split = splitModelId(requested.model)
  if (split?.provider === provider) return split.id
  // If the provider is configured separately, "openai/gpt-oss" may well be an id of a compatible server.
  return split === undefined || requested.provider !== undefined ? requested.model : undefined
}
