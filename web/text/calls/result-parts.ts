import type { Attachment } from '../../../contract/attachments.ts'
import { isFileBlock } from '../../../contract/stored-files.ts'

const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const MAX_IMAGES = 8

interface ResultParts {
  text: string
  /** Images in the result itself, as addresses; results of earlier versions have them. */
  images: string[]
  /** Images and PDFs that are stored apart from the result. */
  files: Attachment[]
}

/** A tool's answer as text and images. Everything else is shown as JSON, so that nothing is left out. */
export function resultParts(content: readonly unknown[]): ResultParts {
  const texts: string[] = []
  const images: string[] = []
  const files: Attachment[] = []
  for (const part of content) {
    if (isFileBlock(part)) {
      files.push({ ...part.file, name: part.name ?? `${part.type} ${files.length + 1}` })
      continue
    }
    if (isRecord(part) && part.type === 'text' && typeof part.text === 'string') texts.push(part.text)
    else if (isRecord(part) && isImage(part) && images.length < MAX_IMAGES) {
      images.push(`data:${part.mimeType};base64,${part.data}`)
    } else texts.push(JSON.stringify(part, null, 2) ?? String(part))
  }
  return { text: texts.join('\n'), images, files }
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
