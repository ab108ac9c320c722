const MAX_NAMED = 5

/** A sentence about files that could not be stored, such as sockets and what is in unreadable folders. Undefined if there are none. */
export function notKeptText(what: string, entries: { path: string; reason: string }[]): string | undefined {
  if (entries.length === 0) return undefined
  const named = entries.slice(0, MAX_NAMED).map(({ path, reason }) => `${path.slice(0, 100)} (${reason})`)
  const more = entries.length > MAX_NAMED ? ` and ${entries.length - MAX_NAMED} more` : ''
  return `${what}: ${named.join(', ')}${more}.`
}
