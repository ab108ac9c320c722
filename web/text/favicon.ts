const MARK = '/favicon.svg'

/** The address of the tab's icon: the product's mark, or the number of things that wait for the person. */
export function faviconFor(waiting: number): string {
  if (waiting === 0) return MARK
  const text = waiting > 99 ? '99+' : String(waiting)
  const size = { 1: 40, 2: 32, 3: 24 }[text.length] ?? 24
  const label = `<text x="32" y="${32 + size * 0.36}" font-family="sans-serif" font-weight="700" font-size="${size}" text-anchor="middle" fill="#fff">${text}</text>`
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="16" fill="#b45309"/>${label}</svg>`
  return `data:image/svg+xml,${encodeURIComponent(svg)}`
}
