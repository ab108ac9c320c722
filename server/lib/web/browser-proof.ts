import type { IncomingMessage } from 'node:http'

/** Its name within the server. Browsers of earlier versions still have one of this name; see `ownerCookieName` for today's. */
export const OWNER_COOKIE = 'mcpo_owner'
/** The secret that the page keeps for this origin: an owner cookie counts only together with it. */
export const OWNER_PROOF_HEADER = 'x-owner-proof'
/** Held the access token itself in earlier versions; see `accessCookieName` for today's. */
export const ACCESS_COOKIE = 'mcpo_access'

/**
 * Whether the page of this request may use the API: ours, or one of a site that the operator allows. Another site can make a browser
 * connect here with its cookies, so those of an allowed site are removed: it shows a session's token. No Origin is no browser.
 */
export function mayUse(request: Pick<IncomingMessage, 'headers'>, allowed: readonly string[] = []): boolean {
  if (isOwnOrigin(request)) return !isForAnotherSite(request)
  if (!isAllowedOrigin(request, allowed)) return false
  delete request.headers.cookie
  return true
}

/** Whether a page of another site has made the browser ask, in a way that names no Origin, such as an image. */
export function isForAnotherSite({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const site = headers['sec-fetch-site']
  return headers.origin === undefined && (site === 'cross-site' || site === 'same-site')
}

export function isAllowedOrigin(
  { headers }: Pick<IncomingMessage, 'headers'>,
  allowed: readonly string[] = []
): boolean {
  return headers.origin !== undefined && allowed.includes(headers.origin)
}

function isOwnOrigin(request: Pick<IncomingMessage, 'headers'>): boolean {
  const { origin, host } = request.headers
  if (origin === undefined) return true
  if (!URL.canParse(origin)) return false
  const page = new URL(origin)
  // A page that came without TLS may have been changed on its way. A proxy that ends TLS does not always say so.
  const schemes = isSecure(request.headers) ? ['https:'] : ['https:', 'http:']
  return page.host === host && schemes.includes(page.protocol)
}

/**
 * Whether the client calls this machine by a name that only means this machine. A page elsewhere can have its own name lead here
 * (DNS rebinding); its Origin then fits its Host, and only the name gives it away.
 */
export function isLoopbackHost(host: string | undefined): boolean {
  if (host === undefined || !URL.canParse(`http://${host}`)) return false
  const { hostname } = new URL(`http://${host}`)
  return /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
}

/** Whether the browser speaks TLS, to us or to the proxy in front. A client that lies here only changes the names of its own cookies. */
export function isSecure(headers: IncomingMessage['headers']): boolean {
  return (
    String(headers['x-forwarded-proto'] ?? '')
      .split(',')[0]
      ?.trim() === 'https'
  )
}

/**
 * Browsers send cookies to every port of a host, so the names hold the port: two instances on one machine don't overwrite each
 * other's. Under TLS the prefix makes browsers refuse the cookie from any other host or path.
 */
export const ownerCookieName = (headers: IncomingMessage['headers']) => cookieName(OWNER_COOKIE, headers)
export const accessCookieName = (headers: IncomingMessage['headers']) => cookieName(ACCESS_COOKIE, headers)

function cookieName(name: string, headers: IncomingMessage['headers']): string {
  const secure = isSecure(headers)
  const at = `http://${headers.host}`
  const port = (URL.canParse(at) && new URL(at).port) || (secure ? '443' : '80')
  return `${secure ? '__Host-' : ''}${name}_${port}`
}

export function readCookie(header: string | undefined, name: string): string | undefined {
  return readCookies(header, name)[0]
}

/** All of that name: a browser sends several when they were set for different paths or domains. */
export function readCookies(header: string | undefined, name: string): string[] {
  return (header?.split(';') ?? []).flatMap((pair) => {
    const at = pair.indexOf('=')
    return at > 0 && pair.slice(0, at).trim() === name ? [decoded(pair.slice(at + 1).trim())] : []
  })
}

/** As it was set: what a cookie may not hold is percent-encoded. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
