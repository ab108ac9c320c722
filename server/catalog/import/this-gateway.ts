import type { ServerEntry } from '../server-entry.ts'

/** Whoever has moved to the gateway has it in their client's file: it must not become a child of itself. */
export function isThisGateway(entry: ServerEntry): boolean {
  if (entry.kind !== 'local') return false
  const words = [entry.command, ...entry.args]
  return words.includes('gateway') && words.some((word) => /(^|[/\\])mcp-orchestrator(\.cmd|[@:][^/\\]*)?$/.test(word))
}
