/** Values in the browser's storage. The page also works if the browser stores nothing (private mode, full disk). */
const PREFIX = 'mcp-orchestrator:'
/** `tab`: survives a reload, but other tabs do not see it. */
type Where = 'browser' | 'tab'
const storage = (where: Where) => (where === 'tab' ? sessionStorage : localStorage)

export function recall(key: string, where: Where = 'browser'): string | null {
  try {
    return storage(where).getItem(PREFIX + key)
  } catch {
    return null
  }
}

/** The rests of all keys that start with `beginning`. */
export function recalled(beginning: string, where: Where): string[] {
  try {
    const start = PREFIX + beginning
    return Object.keys(storage(where)).flatMap((key) => (key.startsWith(start) ? [key.slice(start.length)] : []))
  } catch {
    return []
  }
}

/** Removes all values whose keys start with one of `beginnings` and for which `isMeant` is true. Returns a way to put them back. */
export function forgetAll(beginnings: string[], isMeant: (key: string) => boolean): () => void {
  const forgotten: (() => void)[] = []
  try {
    for (const place of [localStorage, sessionStorage])
      for (const key of Object.keys(place)) {
        if (!beginnings.some((beginning) => key.startsWith(PREFIX + beginning)) || !isMeant(key)) continue
        const value = place.getItem(key) ?? ''
        forgotten.push(() => place.setItem(key, value))
        place.removeItem(key)
      }
  } catch {
    // As in remember().
  }
  return () => {
    try {
      for (const putBack of forgotten) putBack()
    } catch {
      // As in remember().
    }
  }
}

export function remember(key: string, value: string | null, where: Where = 'browser'): void {
  try {
    if (value === null || value === '') storage(where).removeItem(PREFIX + key)
    else storage(where).setItem(PREFIX + key, value)
  } catch {
    // The page works without it.
  }
}
