/** The resources and prompts of a server, as the page shows them. All of it is hostile, and bounded by our server. */
import { z } from 'zod'

export interface OfferedResource {
  /** An address, or with `isTemplate` a pattern for addresses. */
  uri: string
  isTemplate: boolean
  name: string
  description: string
  mimeType: string | null
}

export interface OfferedPrompt {
  name: string
  description: string
  arguments: { name: string; description: string; isRequired: boolean }[]
}

export interface OffersReply {
  resources: OfferedResource[]
  prompts: OfferedPrompt[]
  /** Reasons why something could not be listed. */
  problems: string[]
}

export const readResourceSchema = z.object({ uri: z.string().min(1).max(4000) })
export const getPromptSchema = z.object({
  name: z.string().min(1).max(200),
  arguments: z.record(z.string().max(200), z.string().max(20_000))
})
export type GetPrompt = z.infer<typeof getPromptSchema>

/** Content blocks, as a tool's result has them. */
export interface ResourceReply {
  content: unknown[]
}

export interface PromptReply {
  description: string
  messages: { role: string; content: unknown[] }[]
}
