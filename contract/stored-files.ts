/** Rules for the files of a conversation that page and server share. People attach such files, and tools return them. */

export const MAX_ATTACHMENTS = 20
/** Text up to this size is part of the message; the model reads longer files with its tools. */
export const MAX_TEXT_BYTES = 100_000
/** A size of one image that every vendor accepts: Anthropic allows 5 MB as base64, and shrinks images with longer sides anyway. */
export const MAX_IMAGE_BYTES = 3_700_000
export const MAX_IMAGE_SIDE = 2000

export interface StoredFile {
  /** The SHA-256 of the content. */
  id: string
  /** Found in the content: an image type, `application/pdf`, `text/plain`, or `application/octet-stream`. */
  mediaType: string
  size: number
  /** Only for images. */
  width?: number | undefined
  height?: number | undefined
}

const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** An image or PDF in a tool's result, after its data was moved out of the log. */
export interface FileBlock {
  type: 'image' | 'file'
  mimeType: string
  file: StoredFile
  name?: string
}

export function isFileBlock(part: unknown): part is FileBlock {
  const { file } = (part ?? {}) as { file?: Partial<StoredFile> }
  return typeof file?.id === 'string' && typeof file.mediaType === 'string' && typeof file.size === 'number'
}

const MAX_TYPE_CHARS = 40

/** The type that a part of a result gives itself. Servers send anything, also parts without a type or with one that is no text. */
export function partType(part: unknown): string {
  const { type } = (part ?? {}) as { type?: unknown }
  return typeof type === 'string' ? type.slice(0, MAX_TYPE_CHARS) : 'unknown'
}

/** Whether models and browsers can show it. */
export function isImage({ mediaType }: Pick<StoredFile, 'mediaType'>): boolean {
  return IMAGE_TYPES.includes(mediaType)
}

/** A short description of a file, for the person and the model. */
export function describeFile({ mediaType, size, width, height }: StoredFile): string {
  const pixels = width && height ? `, ${width}×${height}` : ''
  return `${mediaType}${pixels}, ${sizeWords(size)}`
}

function sizeWords(size: number): string {
  if (size < 1000) return `${size} bytes`
  return size < 1_000_000 ? `${Math.round(size / 1000)} kB` : `${(size / 1_000_000).toFixed(1)} MB`
}
