/** The messages between the page and the frame that draws diagrams. The page checks every reply before it uses it. */
export interface DrawRequest {
  id: number
  source: string
  isDark: boolean
}

export type DrawnReply = { id: number; error: string } | { id: number; svg: string; width: number; height: number }

const MAX_SVG_CHARS = 2_000_000
const MAX_ERROR_CHARS = 500
const MAX_SIDE_PX = 20_000

export function isReply(data: unknown, id: number): data is DrawnReply {
  if (typeof data !== 'object' || data === null || !('id' in data) || data.id !== id) return false
  if ('error' in data) return typeof data.error === 'string'
  const { svg, width, height } = data as Record<string, unknown>
  return typeof svg === 'string' && svg.length <= MAX_SVG_CHARS && [width, height].every(isSide)
}

const isSide = (side: unknown) => typeof side === 'number' && side > 0 && side <= MAX_SIDE_PX

export function errorWords(error: string): string {
  return error.slice(0, MAX_ERROR_CHARS).replace(/[\ud800-\udbff]$/, '')
}
