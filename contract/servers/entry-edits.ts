/** Changing an entry of the registry in the page. Hidden values never reach the page, and are kept unless they are replaced. */
import { z } from 'zod'
import { APPROVAL_RULES } from './approval-rule.ts'

export interface EntryDraft {
  /** The version of the entry in the file. An edit names it, so that nobody else's change is lost. */
  version: string
  /** As it is in the file. A variable or header with a hidden value is null. */
  entry: Record<string, unknown>
}

/** Without `confirm` nothing is written, and the reply is a `PlanReply`. */
export const editServerSchema = z.object({
  version: z.string().max(200),
  /** Another name than before renames it. */
  name: z.string().max(200),
  /** The whole entry. A variable or header that is null keeps its value. */
  entry: z.record(z.string(), z.unknown()),
  moveSecrets: z.boolean().optional(),
  confirm: z.string().max(200).optional()
})
export type EditServer = z.infer<typeof editServerSchema>

const toolRuleSchema = z.object({
  /** Null: there is no rule with exactly this tool's name. */
  rule: z.enum(APPROVAL_RULES).nullable(),
  /** Whether the entry lists exactly this tool's name under `readOnly`. */
  isReadOnly: z.boolean()
})
export type ToolRule = z.infer<typeof toolRuleSchema>

export const changeRuleSchema = z.object({
  tool: z.string().min(1).max(200),
  /** The rule that the person saw. If it is different by now, nothing is changed. */
  before: toolRuleSchema,
  after: toolRuleSchema
})
export type ChangeRule = z.infer<typeof changeRuleSchema>
