/** What the page keeps in this browser. A browser that keeps nothing (private mode, full disk) still works. */
const PREFIX = 'mcp-orchestrator:'

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key)
  } catch {
    return null
  }
}

/** All that is kept under keys with one of these beginnings, except what ends with `kept`. */
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
    // Nothing depends on it.
  }
}
