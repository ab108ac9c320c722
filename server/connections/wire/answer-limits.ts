/** The largest single message that a server may send. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024
/** JSON-RPC error code that replaces an answer above that limit. */
export const RESULT_TOO_LARGE = -32050
/** JSON-RPC error code for a remote server whose response stream ended without the answer. */
export const ANSWER_LOST = -32051
