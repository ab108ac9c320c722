const MAX_ADDRESS_CHARS = 2000
const SHOWN_CHARS = 80

/** Only http and https, so that a link runs nothing and opens no other program. */
export function isWebAddress(address: string): boolean {
  return address.length <= MAX_ADDRESS_CHARS && /^https?:\/\/[!-~]+$/i.test(address) && URL.canParse(address)
}

/** Where a link leads. The end of a host name says who owns it. */
export function targetOf(href: string): string {
  const { host, pathname } = URL.canParse(href) ? new URL(href) : { host: '', pathname: href }
  const shown = host || pathname
  return shown.length > SHOWN_CHARS ? `…${shown.slice(-SHOWN_CHARS)}` : shown
}
