/** Values in the browser's local storage. The page also works if the browser stores nothing (private mode, full disk). */
const PREFIX = 'mcp-orchestrator:'

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key)
  } catch {
    return null
  }
}

/** Removes all values whose keys start with one of `beginnings`, except keys that end with `kept`. */
export function forgetAll(beginnings: string[], kept: string): void {
  try {
    for (const key of Object.keys(localStorage))
      if (beginnings.some((beginning) => key.startsWith(PREFIX + beginning)) && !key.endsWith(kept))
        localStorage.removeItem(key)
  } catch {
    // As in remember().
  }
}

export function remember(key: string, value: string | null): void {
  try {
    if (value === null || value === '') localStorage.removeItem(PREFIX + key)
    else localStorage.setItem(PREFIX + key, value)
  } catch {
    // The page works without it.
  }
}
