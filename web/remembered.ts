/** What the page keeps in this browser. A browser that keeps nothing (private mode, full disk) still works. */
const PREFIX = 'mcp-orchestrator:'

export function recall(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key)
  } catch {
    return null
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
