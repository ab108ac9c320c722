/** Files that a person gives to the model with a message. Their content is stored by its hash, apart from the log. */
import { z } from 'zod'
import { MAX_ATTACHMENTS } from './stored-files.ts'

/** The SHA-256 of the content. */
const contentId = z.string().regex(/^[0-9a-f]{64}$/)

/** A `StoredFile`. */
const storedFile = z.object({
  id: contentId,
  mediaType: z.string(),
  size: z.number(),
  width: z.number().optional(),
  height: z.number().optional()
})

export const attachment = storedFile.extend({
  name: z.string(),
  /** An image of it, or a smaller version of an image, which the model and the page get instead. */
  view: storedFile.optional()
})

/** How a message names attachments that were uploaded before. The server looks up everything else. */
export const attachmentInputs = z
  .array(z.object({ id: contentId, name: z.string().min(1).max(300), view: contentId.optional() }))
  .max(MAX_ATTACHMENTS, `A message has at most ${MAX_ATTACHMENTS} files.`)

/** Where an attachment is in the workspace. */
export const addedFile = z.object({ path: z.string(), size: z.number(), attachment: contentId })

export type Attachment = z.infer<typeof attachment>
export type AttachmentInput = z.infer<typeof attachmentInputs>[number]
export type AddedFile = z.infer<typeof addedFile>
