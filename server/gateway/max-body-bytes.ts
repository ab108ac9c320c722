/** The largest request body that the gateway reads over HTTP. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024
