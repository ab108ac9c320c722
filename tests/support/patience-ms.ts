/** Common timeout of all tests: several times what the slowest machine needs. */
export const PATIENCE_MS = 30_000
