/** Detects the type of a file from its first bytes. Names and announced types are hostile and are ignored. */

export interface MediaInfo {
  mediaType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'application/pdf'
  /** Only for images. */
  width?: number
  height?: number
}

/** A small file can announce billions of pixels, which a browser or a vendor would allocate. */
const MAX_SIDE = 16_384
const MAX_PIXELS = 100_000_000
/** Cameras put previews and colour profiles before the frame header of a JPEG. */
const MAX_JPEG_SEGMENTS = 500

/** Returns undefined for everything that models can't look at, including images that are broken or too large to decode safely. */
export function sniffMedia(bytes: Buffer): MediaInfo | undefined {
  if (bytes.toString('latin1', 0, 5) === '%PDF-') return { mediaType: 'application/pdf' }
  const mediaType = imageType(bytes)
  const size = mediaType && imageSize(bytes, mediaType)
  return mediaType && size && isSafe(size) ? { mediaType, ...size } : undefined
}

type ImageType = Exclude<MediaInfo['mediaType'], 'application/pdf'>

/** The type of an image that models can look at; 12 bytes are enough. */
export function imageType(start: Buffer): ImageType | undefined {
  const text = start.toString('latin1', 0, 12)
  if (text.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (text.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (text.startsWith('GIF87a') || text.startsWith('GIF89a')) return 'image/gif'
  if (text.startsWith('RIFF') && text.slice(8) === 'WEBP') return 'image/webp'
  return undefined
}

interface Size {
  width: number
  height: number
}

function isSafe({ width, height }: Size): boolean {
  return width > 0 && height > 0 && width <= MAX_SIDE && height <= MAX_SIDE && width * height <= MAX_PIXELS
}

function imageSize(bytes: Buffer, type: ImageType): Size | undefined {
  try {
    if (type === 'image/png') return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
    if (type === 'image/gif') return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
    return type === 'image/webp' ? webpSize(bytes) : jpegSize(bytes)
  } catch {
    return undefined // it ends before its header does
  }
}

function webpSize(bytes: Buffer): Size | undefined {
  const format = bytes.toString('latin1', 12, 16)
  if (format === 'VP8 ') return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
  if (format === 'VP8X') return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
  if (format !== 'VP8L') return undefined
  const bits = bytes.readUInt32LE(21)
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
}

function jpegSize(bytes: Buffer): Size | undefined {
  let at = 2
  for (let segments = 0; segments < MAX_JPEG_SEGMENTS; segments++) {
    if (bytes.readUInt8(at) !== 0xff) return undefined
    const marker = bytes.readUInt8(at + 1)
    if (isFrame(marker)) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    // Padding, and markers without a length.
    if (marker === 0xff) at += 1
    else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) at += 2
    else at += 2 + Math.max(2, bytes.readUInt16BE(at + 2))
  }
  return undefined
}

/** The start of a frame. Three markers in this range are tables. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
}
