import type { ServerEntry } from '../server-entry.ts'

/** Users of the gateway have it in their client's file; it must not become its own child. */
export function isThisGateway(entry: ServerEntry): boolean {
  if (entry.kind !== 'local') return false
  const words = [entry.command, ...entry.args]
  return words.includes('gateway') && words.some((word) => /(^|[/\\])mcp-orchestrator(\.cmd|[@:][^/\\]*)?$/.test(word))
}
