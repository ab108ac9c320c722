export const APPROVAL_RULES = ['allow', 'ask', 'deny'] as const

/** Decides what happens to calls of a tool: they run, they wait for approval, or they are refused. */
export type ApprovalRule = (typeof APPROVAL_RULES)[number]

export function isApprovalRule(word: string): word is ApprovalRule {
  return (APPROVAL_RULES as readonly string[]).includes(word)
}
