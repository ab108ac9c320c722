import type { IncomingMessage } from 'node:http'

export const OWNER_COOKIE = 'mcpo_owner'
export const ACCESS_COOKIE = 'mcpo_access'

/** A page of another site can make a browser connect here with its cookies; its Origin gives it away. No Origin is no browser. */
export function isOwnOrigin(request: Pick<IncomingMessage, 'headers'>): boolean {
  const { origin, host } = request.headers
  if (origin === undefined) return true
  return URL.canParse(origin) && new URL(origin).host === host
}

export function readCookie(header: string | undefined, name: string): string | undefined {
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return undefined
}
