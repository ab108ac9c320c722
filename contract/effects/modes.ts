/** When a person decides about calls to the sandbox. Calls of MCP servers wait for approval in every mode. */
export const APPROVAL_MODES = ['ask', 'preview', 'review'] as const

/**
 * `ask`: every call waits before it runs. `preview`: a call runs in a fork first, and the person decides on what it did. `review`: the
 * whole turn runs in a fork, and the person reviews its changes at the end.
 */
export type ApprovalMode = (typeof APPROVAL_MODES)[number]

/** The mode of a session whose log names none. */
export const DEFAULT_MODE: ApprovalMode = 'ask'
