import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

/** `api.example.com`, `*.example.com` (below it, at any depth), `*`, `10.0.0.5`, `[::1]`; each with `:443`, `:*`, or the web's ports. */
export interface HostPattern {
  /** Lower case, an address without brackets; of a wildcard what stands behind the star, with its dot. */
  host: string
  wildcard: boolean
  /** undefined: any. */
  ports: number[] | undefined
}

const WEB_PORTS = [80, 443]
const FORM = /^(\*|(?:\*\.)?[^\s:/*[\]@?#]+|\[[0-9a-f:.]+\])(?::(\d{1,5}|\*))?$/i

/** undefined: it is none. */
export function parseHostPattern(text: string): HostPattern | undefined {
  const [, name = '', port] = FORM.exec(text) ?? []
  const ports = port === undefined ? WEB_PORTS : port === '*' ? undefined : [Number(port)]
  if (name === '' || ports?.some((number) => number < 1 || number > 65_535)) return undefined
  if (name === '*') return { host: '', wildcard: true, ports }
  const wildcard = name.startsWith('*.')
  const host = normalHost(wildcard ? name.slice(2) : name)
  if (host === '' || (wildcard && isIP(host))) return undefined
  return { host: wildcard ? `.${host}` : host, wildcard, ports }
}

export function matchesHost({ host: own, wildcard, ports }: HostPattern, host: string, port: number): boolean {
  if (ports !== undefined && !ports.includes(port)) return false
  return wildcard ? host.endsWith(own) : host === own
}

/** As names are compared: lower case, ASCII, without the dot of the root or brackets; '' when it is no name. */
export function normalHost(host: string): string {
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  if (isIP(bare) === 6) return new URL(`http://[${bare}]`).hostname.slice(1, -1)
  return domainToASCII(bare.replace(/\.$/, ''))
}
