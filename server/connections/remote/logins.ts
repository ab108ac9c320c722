/**
 * The OAuth logins to remote servers. Owns finding and refreshing them; `login-store.ts` keeps them and `oauth-login.ts` creates
 * them. Invariant: a token is sent only to the address that it was issued for, and is
 * refreshed only by its own issuer, only for that address.
 */

import { createHash } from 'node:crypto'
import {
  type AuthProvider,
  checkResourceAllowed,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  refreshAuthorization,
  resourceUrlFromServerUrl
} from '@modelcontextprotocol/client'
import { z } from 'zod'
import { AppError, messageOf } from '../../lib/errors.ts'
import { LOGIN_REQUEST } from '../../lib/web/login-request.ts'
import { loginNeeded } from '../wire/call-failure.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { fileLogins, type LoginStore } from './login-store.ts'

const OR_KEY = ' If it needs an API key instead, put it into "headers" in mcp.json.'

const login = z.object({
  url: z.string(),
  issuer: z.string(),
  client: z.looseObject({ client_id: z.string() }),
  tokens: z.looseObject({
    access_token: z.string(),
    token_type: z.coerce.string(),
    refresh_token: z.string().optional().catch(undefined)
  }),
  /** When the access token expires, if the issuer has said so. */
  expiresAt: z.number().optional().catch(undefined)
})
export type Login = z.infer<typeof login>

/** The owner of the logins that everyone without their own uses. */
export const COMMON = ''
const EARLY_MS = 10_000
const MAX_ANSWER_BYTES = 1024 * 1024
const STEP_MS = 15_000
/** Shorter than the time after which others take the lock for left behind. */
const REFRESH_MS = 20_000

export class Logins {
  readonly #store: LoginStore
  readonly #refreshing = new Map<string, Promise<void>>()

  /** A text is the folder with the files. */
  constructor(store: LoginStore | string) {
    this.#store = typeof store === 'string' ? fileLogins(store) : store
  }

  has(server: string, owner: string): boolean {
    return this.#store.has(nameOf(server, owner))
  }

  async read(server: string, owner: string): Promise<Login | undefined> {
    const text = await this.#store.read(nameOf(server, owner))
    return text === undefined ? undefined : asLogin(text)
  }

  write(server: string, owner: string, value: Login): Promise<void> {
    return this.#store.write(nameOf(server, owner), JSON.stringify(value))
  }

  /** Returns false if there was none. */
  remove(server: string, owner: string): Promise<boolean> {
    return this.#store.remove(nameOf(server, owner))
  }

  /** Adds the owner's login to the requests to a server; `hide` gets every token, for redaction. */
  provider(server: string, url: string, owner: string, hide: (secrets: string[]) => void): AuthProvider {
    const mine = async () => {
      const found = await this.read(server, owner)
      if (found?.url !== url) return undefined
      hide([found.tokens.access_token, found.tokens.refresh_token ?? ''])
      return found
    }
    let used: string | undefined
    return {
      token: async () => {
        const { expiresAt = Number.POSITIVE_INFINITY, tokens } = (await mine()) ?? {}
        if (tokens?.refresh_token && expiresAt - EARLY_MS < Date.now()) await this.#refresh(server, owner, mine)
        used = (await mine())?.tokens.access_token
        return used
      },
      onUnauthorized: async ({ response }) => {
        const found = await mine()
        if (found === undefined) throw loginNeeded(server, 'asks for a login', OR_KEY)
        // Another process has refreshed it meanwhile.
        if (found.tokens.access_token !== used) return
        const { resourceMetadataUrl } = extractWWWAuthenticateParams(response)
        await this.#refresh(server, owner, mine, resourceMetadataUrl)
      }
    }
  }

  /** One refresh for all callers that find it expired: an issuer may accept a refresh token only once. */
  async #refresh(server: string, owner: string, mine: Mine, metadataUrl?: URL): Promise<void> {
    const key = nameOf(server, owner)
    const before = (await mine())?.tokens.access_token
    const refresh = () =>
      this.#store.locked(key, async () => {
        // Another process may have refreshed it while this one waited.
        if ((await mine())?.tokens.access_token === before) await this.#refreshNow(server, owner, mine, metadataUrl)
      })
    const running = this.#refreshing.get(key) ?? refresh().finally(() => this.#refreshing.delete(key))
    this.#refreshing.set(key, running)
    await running
  }

  async #refreshNow(server: string, owner: string, mine: Mine, metadataUrl?: URL): Promise<void> {
    const found = await mine()
    const refreshToken = found?.tokens.refresh_token
    if (found === undefined || refreshToken === undefined) throw loginNeeded(server, 'no longer accepts its login')
    const at = metadataUrl === undefined ? {} : { resourceMetadataUrl: metadataUrl }
    const signal = AbortSignal.timeout(REFRESH_MS)
    const fetchFn = loginFetch(() => signal)
    try {
      const info = await discoverOAuthServerInfo(found.url, { ...at, fetchFn })
      const { authorizationServerUrl, authorizationServerMetadata: metadata, resourceMetadata } = info
      const issuer = metadata?.issuer ?? String(authorizationServerUrl)
      if (issuer !== found.issuer) throw issuerChanged(server, found.issuer, issuer)
      const resource = resourceMetadata?.resource
      if (resource !== undefined && !isFor(found.url, resource)) throw resourceChanged(server, resource)
      const fresh = await refreshAuthorization(authorizationServerUrl, {
        ...(metadata ? { metadata } : {}),
        ...(resource === undefined ? {} : { resource }),
        clientInformation: found.client,
        refreshToken,
        fetchFn
      })
      await this.write(server, owner, { ...found, ...withExpiry({ ...found.tokens, ...fresh }) })
    } catch (error) {
      if (error instanceof AppError) throw error
      // A process that ignores the lock may have used the refresh token first and stored the result.
      if ((await mine())?.tokens.refresh_token !== refreshToken) return
      throw loginNeeded(server, `no longer accepts its login (${messageOf(error).slice(0, 200)})`)
    }
  }
}

type Mine = () => Promise<Login | undefined>

function nameOf(server: string, owner: string): string {
  return createHash('sha256').update(`${server}\n${owner}`).digest('hex').slice(0, 32)
}

/** A damaged text counts as no login. */
function asLogin(text: string): Login | undefined {
  try {
    return login.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

export function withExpiry(tokens: Login['tokens']): Pick<Login, 'tokens' | 'expiresAt'> {
  const seconds = Number(tokens.expires_in)
  return { tokens, expiresAt: seconds > 0 ? Date.now() + seconds * 1000 : undefined }
}

/** Fetch for the steps of a login. The remote server chooses the addresses; only what reads may be sent elsewhere by a redirect. */
function loginFetch(deadline: () => AbortSignal): ReturnType<typeof boundedFetch> {
  return boundedFetch(MAX_ANSWER_BYTES, (url, init) => {
    const headers = new Headers(init?.headers)
    headers.set(LOGIN_REQUEST, '1')
    const isRead = ['GET', 'HEAD'].includes(init?.method?.toUpperCase() ?? 'GET')
    return fetch(url, { ...init, headers, redirect: isRead ? 'follow' : 'error', signal: deadline() })
  })
}

/** Fetch for one step of a login. */
export const stepFetch = loginFetch(() => AbortSignal.timeout(STEP_MS))

/** A server that names another resource would get a token for that resource. */
function isFor(url: string, resource: string): boolean {
  return checkResourceAllowed({ requestedResource: resourceUrlFromServerUrl(url), configuredResource: resource })
}

function resourceChanged(server: string, resource: string): AppError {
  const message = `The server "${server}" now asks for a token for ${resource.slice(0, 200)}, which is not its address. No token was requested. Contact its operator.`
  return new AppError('forbidden', 'login_resource_changed', message, { details: { sent: false, permanent: true } })
}

function issuerChanged(server: string, before: string, now: string): AppError {
  const message = `The server "${server}" now names ${now.slice(0, 200)} as the issuer of its logins, but your login is from ${before.slice(0, 200)}. Nothing was sent there. If the change is right, log out and in again.`
  return new AppError('forbidden', 'login_issuer_changed', message, { details: { sent: false, permanent: true } })
}
