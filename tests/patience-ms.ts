/** What the slowest machine needs for anything that a test waits for, several times over. */
export const PATIENCE_MS = 30_000
