/**
 * Keys of model providers that an administrator enters in the page. Owns where they are kept (the credentials file) and that they take
 * effect at once. Invariant: a key is kept only after its provider has accepted it, and is never shown again.
 */
import { existsSync } from 'node:fs'
import type { ProviderKeysReply } from '../../contract/rest.ts'
import { MODEL_KEY, openCredentials } from '../catalog/credentials.ts'
import { removeSecret, setSecret } from '../catalog/store-secrets.ts'
import { modelAccess } from '../config/model-access.ts'
import type { Settings } from '../config/settings.ts'
import { AppError } from '../lib/errors.ts'
import type { KeyedModels, ModelsOptions } from '../models/models-options.ts'
import type { Models } from '../models/port.ts'

const PROVIDERS = [
  { id: 'anthropic', label: 'Anthropic', setting: 'ANTHROPIC_API_KEY', access: 'anthropic' },
  { id: 'gemini', label: 'Gemini', setting: 'GEMINI_API_KEY', access: 'gemini' },
  { id: 'openai', label: 'OpenAI', setting: 'OPENAI_API_KEY', access: 'openai' }
] as const

type Provider = (typeof PROVIDERS)[number]
type Access = Omit<ModelsOptions, 'logger'>

/** The providers' keys from the settings, with those that were entered in the page in their place. */
export function accessWithKeys(settings: Settings): Access {
  const access = modelAccess(settings)
  const keyOf = storedKeys(settings.CREDENTIALS_FILE)
  for (const provider of PROVIDERS) {
    const key = keyOf(provider)
    if (key !== undefined) access[provider.access] = withKey(settings, provider, key)
  }
  return access
}

export class ProviderKeys {
  readonly #settings: Settings
  readonly #file: string
  readonly #keyed: KeyedModels
  readonly #models: Pick<Models, 'catalog'>

  constructor(settings: Settings, file: string, keyed: KeyedModels, models: Pick<Models, 'catalog'>) {
    this.#settings = settings
    this.#file = file
    this.#keyed = keyed
    this.#models = models
  }

  async list(): Promise<ProviderKeysReply['providers']> {
    const { providers } = await this.#models.catalog()
    const keyOf = storedKeys(this.#file)
    return PROVIDERS.map((provider) => {
      const { id, label, setting } = provider
      const status = providers.find((each) => each.id === id)
      const isSet = this.#settings[setting] !== undefined
      const source = keyOf(provider) !== undefined ? 'page' : isSet ? 'settings' : null
      return { id, label, source, ok: status?.ok ?? false, reason: status?.reason ?? null }
    })
  }

  /** Throws if the provider refuses the key or can't be asked; then nothing is kept. */
  async set(id: string, key: string): Promise<void> {
    const provider = providerOf(id)
    const access = { ...accessWithKeys(this.#now()), [provider.access]: withKey(this.#settings, provider, key) }
    await this.#keyed.tryAccess(access, provider.id)
    await setSecret(this.#file, nameOf(provider), key)
    this.#keyed.useAccess(access)
  }

  /** Goes back to the key of the settings, if there is one. */
  async remove(id: string): Promise<void> {
    await removeSecret(this.#file, nameOf(providerOf(id)))
    this.#keyed.useAccess(accessWithKeys(this.#now()))
  }

  #now(): Settings {
    return { ...this.#settings, CREDENTIALS_FILE: this.#file }
  }
}

function withKey(settings: Settings, { id }: Provider, apiKey: string): { apiKey: string; baseUrl?: string } {
  const baseUrl = settings[`${id.toUpperCase()}_BASE_URL` as 'ANTHROPIC_BASE_URL']
  return { apiKey, ...(baseUrl ? { baseUrl } : {}) }
}

/** Opens the file once for all providers. */
function storedKeys(file: string | undefined): (provider: Provider) => string | undefined {
  // The first key creates the file.
  if (file === undefined || !existsSync(file)) return () => undefined
  const credentials = openCredentials({ file, environment: {} })
  return (provider) => credentials.modelKey(nameOf(provider))
}

function nameOf({ id }: Provider): string {
  return `${MODEL_KEY}${id.toUpperCase()}`
}

function providerOf(id: string): Provider {
  const found = PROVIDERS.find((provider) => provider.id === id)
  if (found) return found
  throw new AppError('not-found', 'unknown_provider', 'There is no provider with this name whose key can be set here.')
}
