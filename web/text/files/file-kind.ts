import { byteText } from './byte-text.ts'

/** How the page shows a file, by the ending of its name. */
export type FileKind = 'markdown' | 'table' | 'image' | 'svg' | 'pdf' | 'notebook' | 'text'

const KINDS: Record<string, FileKind> = {
  md: 'markdown',
  markdown: 'markdown',
  csv: 'table',
  tsv: 'table',
  svg: 'svg',
  pdf: 'pdf',
  ipynb: 'notebook'
}
export const SVG = 'image/svg+xml'
const IMAGE_TYPES: Record<string, string> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  bmp: 'image/bmp',
  ico: 'image/x-icon',
  svg: SVG
}

function extensionOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  return name === 'dockerfile' ? name : (/\.([a-z0-9]+)$/.exec(name)?.[1] ?? '')
}

export function kindOf(path: string): FileKind {
  const extension = extensionOf(path)
  if (Object.hasOwn(KINDS, extension)) return KINDS[extension] ?? 'text'
  return Object.hasOwn(IMAGE_TYPES, extension) ? 'image' : 'text'
}

/** Set by us: a type that the file or the server names could make the browser run it. */
export function imageTypeOf(path: string): string {
  return IMAGE_TYPES[extensionOf(path)] ?? 'application/octet-stream'
}

/** An address without our origin. The bytes go in as they are, so that the browser finds the encoding that the file names. */
export function svgUrl(content: Uint8Array): string {
  return `data:${SVG};base64,${btoa(byteText(content))}`
}
