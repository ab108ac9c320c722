/** Files that a person gives to the model with a message, and images in the results of tools. Their content is stored by its hash. */
import { z } from 'zod'

export const MAX_ATTACHMENTS = 20
/** Text up to this size is part of the message; the model reads longer files with its tools. */
export const MAX_TEXT_BYTES = 100_000
/** What every vendor accepts for one image: Anthropic allows 5 MB as base64, and shrinks images that are larger than this anyway. */
export const MAX_MODEL_IMAGE_BYTES = 3_700_000
export const MAX_MODEL_IMAGE_SIDE = 2000

const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']

/** The SHA-256 of the content. */
export const contentId = z.string().regex(/^[0-9a-f]{64}$/)

const storedFile = z.object({
  id: contentId,
  /** Found in the content: an image type, `application/pdf`, `text/plain`, or `application/octet-stream`. */
  mediaType: z.string(),
  size: z.number(),
  /** Only for images. */
  width: z.number().optional(),
  height: z.number().optional()
})

export const attachment = storedFile.extend({
  name: z.string(),
  /** A smaller version of a large image, which the model and the page get instead. */
  view: storedFile.optional()
})

/** How a message names an attachment that was uploaded before. The server looks up everything else. */
export const attachmentInput = z.object({ id: contentId, name: z.string().min(1).max(200), view: contentId.optional() })

/** Where an attachment is in the workspace. */
export const addedFile = z.object({ path: z.string(), size: z.number(), attachment: contentId })

export type StoredFile = z.infer<typeof storedFile>
export type Attachment = z.infer<typeof attachment>
export type AttachmentInput = z.infer<typeof attachmentInput>
export type AddedFile = z.infer<typeof addedFile>

/** An image in a tool's result, after its data was moved out of the log. */
export interface FileBlock {
  type: 'image' | 'file'
  mimeType: string
  file: StoredFile
  name?: string
}

export function isFileBlock(part: unknown): part is FileBlock {
  const { file } = (part ?? {}) as { file?: unknown }
  return storedFile.safeParse(file).success
}

export function isImage({ mediaType }: Pick<StoredFile, 'mediaType'>): boolean {
  return IMAGE_TYPES.includes(mediaType)
}

/** What a person and the model read about a file. */
export function describeFile({ mediaType, size, width, height }: StoredFile): string {
  const pixels = width && height ? `, ${width}×${height}` : ''
  return `${mediaType}${pixels}, ${sizeWords(size)}`
}

function sizeWords(size: number): string {
  if (size < 1000) return `${size} bytes`
  return size < 1_000_000 ? `${Math.round(size / 1000)} kB` : `${(size / 1_000_000).toFixed(1)} MB`
}
