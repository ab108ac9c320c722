const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const MAX_IMAGES = 8

/** A tool's answer as text and images. Everything else is shown as JSON, so that nothing is left out. */
export function resultParts(content: readonly unknown[]): { text: string; images: string[] } {
  const texts: string[] = []
  const images: string[] = []
  for (const part of content) {
    if (isRecord(part) && part.type === 'text' && typeof part.text === 'string') texts.push(part.text)
    else if (isRecord(part) && isImage(part) && images.length < MAX_IMAGES) {
      images.push(`data:${part.mimeType};base64,${part.data}`)
    } else texts.push(JSON.stringify(part, null, 2) ?? String(part))
  }
  return { text: texts.join('\n'), images }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isImage(part: Record<string, unknown>): part is { mimeType: string; data: string } {
  const { type, mimeType, data } = part
  return (
    type === 'image' &&
    typeof mimeType === 'string' &&
    IMAGE_TYPES.has(mimeType) &&
    typeof data === 'string' &&
    /^[A-Za-z0-9+/=]+$/.test(data)
  )
}
