/** A person's settings for one session: how the model works, and their instructions to it. Missing settings have their default. */
import { z } from 'zod'

/** How much a model thinks before it answers, where it can. */
export const EFFORTS = ['off', 'low', 'medium', 'high'] as const
export type Effort = (typeof EFFORTS)[number]

export const MAX_INSTRUCTIONS_CHARS = 8000
export const instructionsText = z
  .string()
  .trim()
  .max(MAX_INSTRUCTIONS_CHARS, `Instructions have at most ${MAX_INSTRUCTIONS_CHARS} characters.`)

export const sessionSettings = z.object({
  effort: z.enum(EFFORTS).optional(),
  temperature: z.number().min(0).max(2).optional(),
  /** At most the operator's limit. */
  maxOutputTokens: z.number().int().min(16).max(10_000_000).optional(),
  instructions: instructionsText.optional()
})
export type SessionSettings = z.infer<typeof sessionSettings>

const USUAL = 'as usual'

/** The sentence for the transcript; empty if nothing has changed. */
export function settingsChange(before: SessionSettings, after: SessionSettings): string {
  const changes: string[] = []
  if (before.effort !== after.effort) changes.push(`thinking ${after.effort ?? USUAL}`)
  if (before.temperature !== after.temperature) changes.push(`temperature ${after.temperature ?? USUAL}`)
  if (before.maxOutputTokens !== after.maxOutputTokens) {
    const limit = after.maxOutputTokens === undefined ? USUAL : `${after.maxOutputTokens} tokens at most`
    changes.push(`output ${limit}`)
  }
  if ((before.instructions ?? '') !== (after.instructions ?? ''))
    changes.push(after.instructions ? 'new instructions' : 'no instructions')
  return changes.length === 0 ? '' : `Session settings changed: ${changes.join(', ')}.`
}
