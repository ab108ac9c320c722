import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  auth,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens
} from '@modelcontextprotocol/client'
import { AppError, isAppError, messageOf } from '../../lib/errors.ts'
import { withDeadline } from '../../lib/waiting/deadline.ts'
import { causesOf, unreachedBy } from '../wire/call-failure.ts'
import { type Login, stepFetch, withExpiry } from './logins.ts'

export interface LoginOptions {
  server: string
  url: string
  /** Shows the person the page where they approve the login. */
  show(url: URL): void
  waitMs: number
}

/**
 * Lets a person log in to a remote server in their browser: discovery, client registration, PKCE, and a redirect to a local
 * address that exists only for this login.
 */
export async function oauthLogin({ server, url, show, waitMs }: LoginOptions): Promise<Login> {
  const { promise: answered, resolve: onAnswer } = Promise.withResolvers<URLSearchParams>()
  const state = randomBytes(16).toString('hex')
  const door = await openCallbackDoor(state, onAnswer)
  const { port } = door.address() as AddressInfo
  const memory: Memory = {}
  const provider = loginProvider(`http://127.0.0.1:${port}/callback`, state, memory, show)
  try {
    const options = { serverUrl: url, ...(await challengeOf(url)), fetchFn: stepFetch }
    if ((await auth(provider, options)) === 'REDIRECT') {
      const what = `the approval of the login to "${server}" in the browser`
      const answer = await withDeadline({ what, ms: waitMs, code: 'login_failed' }, () => answered)
      const authorizationCode = answer.get('code')
      if (authorizationCode === null) throw new Error(`the answer was ${answer.get('error') ?? 'no code'}`)
      const iss = answer.get('iss')
      await auth(provider, { ...options, authorizationCode, ...(iss === null ? {} : { iss }) })
    }
    const { tokens, client } = memory
    if (!tokens?.issuer || !client) throw new Error('its issuer gave no token')
    return { url, issuer: tokens.issuer, client: { ...client }, ...withExpiry({ ...tokens }) }
  } catch (error) {
    if (isAppError(error)) throw error
    const chain = causesOf(error)
    const unreached = unreachedBy(chain)
    if (unreached !== undefined) {
      const message = `The login to "${server}" failed: it, or the place of its logins, can't be reached (${unreached}).`
      throw new AppError('unavailable', 'login_failed', message, { cause: error })
    }
    // Many servers answer an unknown address with a page for browsers.
    const why = chain.map((each) => messageOf(each).replace(/:?\s*<(!doctype|html).*$/is, '')).join(': ')
    const hint = memory.discovery?.authorizationServerMetadata === undefined ? NO_OAUTH : ''
    const message = `The login to "${server}" failed: ${why.slice(0, 300).replace(/\.$/, '')}.${hint}`
    throw new AppError('unavailable', 'login_failed', message, { cause: error })
  } finally {
    door.closeAllConnections()
    door.close()
  }
}

const NO_OAUTH = ' The server offers no OAuth login. If it needs an API key, put it into "headers" in mcp.json.'

interface Memory {
  client?: StoredOAuthClientInformation
  tokens?: StoredOAuthTokens
  verifier?: string
  discovery?: OAuthDiscoveryState
}

function loginProvider(
  redirectUrl: string,
  state: string,
  memory: Memory,
  show: (url: URL) => void
): OAuthClientProvider {
  return {
    redirectUrl,
    clientMetadata: {
      client_name: 'MCP Orchestrator',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native'
    },
    state: () => state,
    clientInformation: () => memory.client,
    saveClientInformation: (client) => void Object.assign(memory, { client }),
    tokens: () => memory.tokens,
    saveTokens: (tokens) => void Object.assign(memory, { tokens }),
    codeVerifier: () => memory.verifier ?? '',
    saveCodeVerifier: (verifier) => void Object.assign(memory, { verifier }),
    discoveryState: () => memory.discovery,
    saveDiscoveryState: (discovery) => void Object.assign(memory, { discovery }),
    redirectToAuthorization: show
  }
}

/** Asks the server, without a login, where its logins come from. */
async function challengeOf(url: string): Promise<{ resourceMetadataUrl?: URL; scope?: string }> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
  const response = await stepFetch(url, { method: 'POST', headers, body })
  await response.body?.cancel()
  if (response.status !== 401) return {}
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
  return { ...(resourceMetadataUrl ? { resourceMetadataUrl } : {}), ...(scope ? { scope } : {}) }
}

async function openCallbackDoor(state: string, onAnswer: (answer: URLSearchParams) => void): Promise<Server> {
  const door = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1')
    const isOurs = pathname === '/callback' && searchParams.get('state') === state
    response.writeHead(isOurs ? 200 : 404, { 'content-type': 'text/plain', connection: 'close' })
    response.end(isOurs ? 'You can close this page and go back to the terminal.\n' : 'There is nothing here.\n')
    if (isOurs) onAnswer(searchParams)
  })
  await new Promise<void>((resolve, reject) => {
    door.once('error', reject)
    door.listen(0, '127.0.0.1', resolve)
  })
  return door
}
