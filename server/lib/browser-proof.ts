import type { IncomingMessage } from 'node:http'

export const OWNER_COOKIE = 'mcpo_owner'
export const ACCESS_COOKIE = 'mcpo_access'

/** A page of another site can make a browser connect here with its cookies; its Origin gives it away. No Origin is no browser. */
export function isOwnOrigin(request: Pick<IncomingMessage, 'headers'>): boolean {
  const { origin, host } = request.headers
  if (origin === undefined) return true
  return URL.canParse(origin) && new URL(origin).host === host
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

export function readCookie(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return decoded(pair.slice(at + 1).trim())
  }
  return undefined
}

/** As it was set: what a cookie may not hold is percent-encoded. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
