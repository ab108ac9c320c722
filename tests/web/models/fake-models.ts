import type { ModelsReply } from '../../../contract/rest.ts'

export interface FakeProvider {
  id: string
  label: string
  source: string | null
  ok: boolean
  reason: string | null
}

/** Takes any key, and removes one. */
export function changeKey(providers: FakeProvider[], method: string | undefined, path: string): object | undefined {
  const [, id] = /^\/api\/providers\/([^/]+)\/key$/.exec(path) ?? []
  const provider = providers.find((each) => each.id === id)
  if (!provider) return undefined
  const isThere = method === 'PUT'
  Object.assign(provider, { source: isThere ? 'page' : null, ok: isThere, reason: isThere ? null : 'No key is set.' })
  return {}
}

export function fakeModels(more: ModelsReply['models']): ModelsReply {
  return {
    default: 'demo/demo',
    maxHistoryTokens: 100_000,
    models: [
      { id: 'demo/demo', name: 'Demo (rules, no AI)', inputs: { images: false, pdfs: false }, provider: 'demo' },
      { id: 'anthropic/large', name: 'Large', provider: 'anthropic' },
      ...more
    ],
    providers: [
      { id: 'anthropic', ok: true },
      { id: 'gemini', ok: false, reason: 'No GEMINI_API_KEY is set.' },
      { id: 'demo', ok: true }
    ]
  }
}
