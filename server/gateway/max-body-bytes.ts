/** Maximum size of a request body over HTTP. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024
