import { AppError, messageOf } from '../../lib/errors.ts'
import { readBounded } from '../../lib/streams/read-bounded.ts'
import { cleanText } from '../providers/clean-text.ts'
import type { Endpoint } from '../providers/endpoint.ts'

const MAX_BYTES = 4 * 1024 * 1024

/** Describes the request in error messages. */
interface Wanted {
  name: string
  code: string
  /** The JSON body to send. */
  body?: unknown
}

const MODELS: Wanted = { name: 'a list of models', code: 'model_list_unreadable' }

/** Fetches one JSON document from a provider, with a size limit. Every failure is a sentence for the user. */
export async function fetchJson(
  endpoint: Endpoint,
  path: string,
  signal: AbortSignal,
  wanted = MODELS
): Promise<unknown> {
  const response = await send(endpoint, path, signal, wanted)
  const body = await textOf(response, endpoint, wanted)
  if (!response.ok) throw refused(response.status, body, endpoint, wanted)
  try {
    return JSON.parse(body)
  } catch {
    throw nonsense(endpoint, wanted)
  }
}

export function nonsense({ label, shownUrl, urlSetting }: Endpoint, { name, code } = MODELS): AppError {
  const message = `${label} did not answer with ${name} at ${shownUrl}. Check ${urlSetting}.`
  return new AppError('unavailable', code, message)
}

async function send(endpoint: Endpoint, path: string, signal: AbortSignal, { body }: Wanted): Promise<Response> {
  const posted =
    body === undefined
      ? {}
      : { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  try {
    const headers = { accept: 'application/json', ...posted.headers, ...authHeaders(endpoint) }
    // A redirect would send the key to another host.
    return await fetch(endpoint.url + path, { ...posted, headers, signal, redirect: 'manual' })
  } catch (error) {
    throw unreachable(error, endpoint)
  }
}

function authHeaders({ provider, apiKey }: Endpoint): Record<string, string> {
  if (apiKey === undefined) return {}
  switch (provider) {
    case 'anthropic':
      return { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }
    case 'gemini':
      return { 'x-goog-api-key': apiKey }
    default:
      return { authorization: `Bearer ${apiKey}` }
  }
}

async function textOf(response: Response, endpoint: Endpoint, wanted: Wanted): Promise<string> {
  const body = await readBounded(response.body, MAX_BYTES).catch((error) => {
    throw unreachable(error, endpoint)
  })
  if (!body) throw nonsense(endpoint, wanted)
  return body.toString('utf8')
}

function unreachable(error: unknown, { label, shownUrl, secrets, urlSetting }: Endpoint): AppError {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  const why = cleanText(messageOf(cause), secrets, 150)
  const message = `${label} can't be reached at ${shownUrl} (${why}). Check the network and ${urlSetting}.`
  return new AppError('unavailable', 'model_unreachable', message)
}

function refused(status: number, body: string, endpoint: Endpoint, { name, code }: Wanted): AppError {
  const { label, shownUrl, keySetting, urlSetting, secrets } = endpoint
  const said = cleanText(body.match(/"message"\s*:\s*"((?:[^"\\]|\\.){1,500})/)?.[1] ?? '', secrets, 200)
  const quote = said === '' ? '' : `: "${said}"`
  if (status === 401 || status === 403 || (status === 400 && /API[_ ]key/i.test(body))) {
    const message = `${label} rejected the key (${status})${quote}. Check ${keySetting}.`
    return new AppError('unavailable', 'model_key_rejected', message)
  }
  if (status >= 300 && status < 400) {
    const message = `${label} answers at ${shownUrl} with a redirect. Set ${urlSetting} to the final address.`
    return new AppError('unavailable', code, message)
  }
  const message = `${label} answered ${status} at ${shownUrl} when asked for ${name}${quote}. Check ${urlSetting}, or try again later.`
  return new AppError('unavailable', code, message, { details: { status } })
}
