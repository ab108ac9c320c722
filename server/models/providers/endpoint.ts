import { AppError } from '../../lib/errors.ts'
import type { ModelsOptions, ProviderId } from '../models-options.ts'

type RemoteProviderId = Exclude<ProviderId, 'demo'>

/** The address of a provider and its name in messages. This is the only place that holds its key. */
export interface Endpoint {
  provider: RemoteProviderId
  label: string
  /** Includes the version segment and has no trailing slash: paths are appended to it. */
  url: string
  /** The same URL without credentials, for messages. */
  shownUrl: string
  apiKey: string | undefined
  keySetting: string
  urlSetting: string
  /** Values that must never appear in a message: the key, and a password in the URL. */
  secrets: string[]
}

interface Convention {
  label: string
  home: string
  /** Appended to the configured address unless it is already there. */
  version: string
  setting: string
}

const CONVENTIONS: Record<RemoteProviderId, Convention> = {
  anthropic: { label: 'Anthropic', home: 'https://api.anthropic.com', version: '/v1', setting: 'ANTHROPIC' },
  gemini: {
    label: 'Gemini',
    home: 'https://generativelanguage.googleapis.com',
    version: '/v1beta',
    setting: 'GEMINI'
  },
  openai: { label: 'OpenAI', home: 'https://api.openai.com/v1', version: '', setting: 'OPENAI' },
  'openai-compatible': {
    label: 'The OpenAI-compatible server',
    home: '',
    version: '',
    setting: 'OPENAI_COMPATIBLE'
  }
}

/** The configured providers; the first usable one becomes the default. */
export function configuredEndpoints(options: Omit<ModelsOptions, 'logger'>): Endpoint[] {
  const { anthropic, gemini, openai, openaiCompatible } = options
  return [
    anthropic && endpoint('anthropic', anthropic),
    gemini && endpoint('gemini', gemini),
    openai && endpoint('openai', openai),
    openaiCompatible && endpoint('openai-compatible', openaiCompatible)
  ].filter((found) => found !== undefined)
}

function endpoint(provider: RemoteProviderId, access: { apiKey?: string; baseUrl?: string }): Endpoint {
  const { label, home, version, setting } = CONVENTIONS[provider]
  const base = (access.baseUrl || home).replace(/\/+$/, '')
  const url = parse(version !== '' && !base.endsWith(version) ? base + version : base, `${setting}_BASE_URL`)
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  return {
    provider,
    label,
    url: url.href.replace(/\/+$/, ''),
    shownUrl: shown.href.replace(/\/+$/, ''),
    apiKey: access.apiKey,
    keySetting: `${setting}_API_KEY`,
    urlSetting: `${setting}_BASE_URL`,
    secrets: [access.apiKey, url.password, decodeURIComponent(url.password)].filter((secret) => secret !== undefined)
  }
}

function parse(text: string, setting: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new AppError('invalid', 'invalid_setting', `${setting} must be an http or https address.`)
  }
  return url
}
