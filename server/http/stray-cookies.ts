import { isIP } from 'node:net'

const SOCKET_PATH = '/socket.io/'

/**
 * `Set-Cookie` lines that remove cookies of this name which we did not set: ours is for the path `/` and this host alone. A page on
 * another port or a sibling domain can set others, and browsers don't say for which path or domain a cookie was set.
 */
export function expiredCookies(name: string, url: string, host: string | undefined): string[] {
  const paths = [...new Set([...pathsAbove(url), ...pathsAbove(SOCKET_PATH)])]
  // Browsers accept the prefix only for the path "/" of one host, so there is nothing to remove.
  if (name.startsWith('__Host-')) return []
  const places = paths.map((path) => `Path=${path}`)
  for (const domain of domainsAbove(host)) {
    places.push(...['/', ...paths].map((path) => `Path=${path}; Domain=${domain}`))
  }
  return places.map((place) => `${name}=; ${place}; Max-Age=0`)
}

/** Every path but `/` for which a cookie is sent to this address. */
function pathsAbove(url: string): string[] {
  const path = url.split(/[?#]/)[0] ?? '/'
  const parts = path.split('/').slice(1, 8)
  return parts.flatMap((_part, at) => {
    const above = `/${parts.slice(0, at + 1).join('/')}`
    return /^\/[\w./%~-]+$/.test(above) ? [above, `${above}/`] : []
  })
}

function domainsAbove(host: string | undefined): string[] {
  const at = `http://${host}`
  const name = URL.canParse(at) ? new URL(at).hostname : ''
  const labels = name.split('.')
  if (isIP(name) || name.startsWith('[')) return []
  return labels.slice(0, -1).map((_label, from) => labels.slice(from).join('.'))
}
