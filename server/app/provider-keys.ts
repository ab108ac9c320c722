/**
 * Keys of model providers that an administrator enters in the page. Owns where they are kept (the credentials file; with several
 * instances, also the store) and that they take effect on all instances within seconds. Invariant: a key is kept only after its provider
 * has accepted it, and is never shown again.
 */
import { existsSync } from 'node:fs'
import type { ProviderKeysReply } from '../../contract/rest.ts'
import { MODEL_KEY, openCredentials } from '../catalog/credentials.ts'
import { removeSecret, setSecret } from '../catalog/store-secrets.ts'
import { modelAccess } from '../config/model-access.ts'
import type { Settings } from '../config/settings.ts'
import { canonicalJson } from '../lib/canonical-json.ts'
import { AppError, messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { KeyedModels, ModelsOptions } from '../models/models-options.ts'
import type { Models } from '../models/port.ts'
import type { EnteredKeys, SharedKeys } from './shared-keys.ts'

const PROVIDERS = [
  { id: 'anthropic', label: 'Anthropic', setting: 'ANTHROPIC_API_KEY', access: 'anthropic' },
  { id: 'gemini', label: 'Gemini', setting: 'GEMINI_API_KEY', access: 'gemini' },
  { id: 'openai', label: 'OpenAI', setting: 'OPENAI_API_KEY', access: 'openai' }
] as const

type Provider = (typeof PROVIDERS)[number]
type Access = Omit<ModelsOptions, 'logger'>

const FOLLOW_MS = 3000

/** The providers' keys from the settings, with those that were entered in the page in their place. */
export function accessWithKeys(settings: Settings): Access {
  return accessWith(settings, keysInFile(settings.CREDENTIALS_FILE))
}

interface ProviderKeysOptions {
  file: string
  /** Set if there are several instances. */
  shared?: SharedKeys | undefined
  keyed: KeyedModels
  models: Pick<Models, 'catalog'>
  logger: Logger
}

export class ProviderKeys {
  readonly #settings: Settings
  readonly #options: ProviderKeysOptions
  #used: string
  #problem = ''
  #timer: NodeJS.Timeout | undefined

  constructor(settings: Settings, options: ProviderKeysOptions) {
    this.#settings = settings
    this.#options = options
    this.#used = canonicalJson(keysInFile(settings.CREDENTIALS_FILE))
  }

  /** From now on, keys that were entered on another instance, or changed in the file, are used here too. Begins to detect models. */
  async follow(): Promise<void> {
    await this.refresh()
    this.#timer ??= setInterval(() => void this.refresh(), FOLLOW_MS).unref()
    const { models, logger } = this.#options
    void models.catalog().catch((error) => logger.warn({ err: error }, 'Models could not be detected.'))
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Keeps the keys that are in use if others can't be read. */
  async refresh(): Promise<void> {
    try {
      this.#use(await this.#keys())
    } catch (error) {
      this.#report(`The keys of providers can't be read: ${messageOf(error)}`)
    }
  }

  async list(): Promise<ProviderKeysReply['providers']> {
    await this.refresh()
    const { providers } = await this.#options.models.catalog()
    const keys = await this.#keys()
    return PROVIDERS.map(({ id, label, setting }) => {
      const status = providers.find((each) => each.id === id)
      const isSet = this.#settings[setting] !== undefined
      const source = keys[id] != null ? 'page' : isSet ? 'settings' : null
      return { id, label, source, ok: status?.ok ?? false, reason: status?.reason ?? null }
    })
  }

  /** Throws if the provider refuses the key or can't be asked; then nothing is kept. */
  async set(id: string, key: string): Promise<void> {
    const provider = providerOf(id)
    const { file, shared, keyed } = this.#options
    const keys = { ...(await this.#keys()), [id]: key }
    await keyed.tryAccess(accessWith(this.#settings, keys), provider.id)
    await setSecret(file, nameOf(provider), key)
    await shared?.write(id, key)
    this.#use(keys)
  }

  /** Goes back to the key of the settings, if there is one. */
  async remove(id: string): Promise<void> {
    const { file, shared } = this.#options
    await removeSecret(file, nameOf(providerOf(id)))
    await shared?.write(id, null)
    this.#use(await this.#keys())
  }

  /** The store counts more than the file: another instance may have replaced or removed a key that is in the file of this one. */
  async #keys(): Promise<EnteredKeys> {
    const inFile = keysInFile(this.#options.file)
    const { keys, unreadable } = (await this.#options.shared?.read()) ?? { keys: {}, unreadable: [] }
    const which = unreadable.join(', ')
    this.#report(which && `Enter the key again for ${which}: it was stored with another ADMIN_TOKEN.`)
    return { ...inFile, ...keys }
  }

  #use(keys: EnteredKeys): void {
    const used = canonicalJson(keys)
    if (used === this.#used) return
    this.#used = used
    this.#options.keyed.useAccess(accessWith(this.#settings, keys))
  }

  #report(problem: string): void {
    if (problem !== '' && problem !== this.#problem) this.#options.logger.warn(problem)
    this.#problem = problem
  }
}

function accessWith(settings: Settings, keys: EnteredKeys): Access {
  const access = modelAccess(settings)
  for (const provider of PROVIDERS) {
    const key = keys[provider.id]
    if (key != null) access[provider.access] = withKey(settings, provider, key)
  }
  return access
}

function withKey(settings: Settings, { id }: Provider, apiKey: string): { apiKey: string; baseUrl?: string } {
  const baseUrl = settings[`${id.toUpperCase()}_BASE_URL` as 'ANTHROPIC_BASE_URL']
  return { apiKey, ...(baseUrl ? { baseUrl } : {}) }
}

function keysInFile(file: string | undefined): EnteredKeys {
  // The first key creates the file.
  if (file === undefined || !existsSync(file)) return {}
  const credentials = openCredentials({ file, environment: {}, ours: [] })
  const found = PROVIDERS.map((provider) => [provider.id, credentials.modelKey(nameOf(provider))] as const)
  return Object.fromEntries(found.filter((each): each is [Provider['id'], string] => each[1] !== undefined))
}

function nameOf({ id }: Provider): string {
  return `${MODEL_KEY}${id.toUpperCase()}`
}

function providerOf(id: string): Provider {
  const found = PROVIDERS.find((provider) => provider.id === id)
  if (found) return found
  throw new AppError('not-found', 'unknown_provider', 'There is no provider with this name whose key can be set here.')
}
