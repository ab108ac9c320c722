/** In a chat, these names mean our own tools, so no server of the registry may have them. */
export const WORKSPACE = 'workspace'
/** Our own tools that find and run others. */
export const ROUTER = 'mcp-orchestrator'
/** Our own tool that runs programs. */
export const PROGRAMS = 'mcp-orchestrator-code'

const OWN = new Set([WORKSPACE, ROUTER, PROGRAMS])

export function isOwnSource(server: string): boolean {
  return OWN.has(server)
}

/** Also a name that a person would take for one of ours. */
export function looksLikeOwnSource(server: string): boolean {
  return OWN.has(server.normalize('NFKC').trim().toLowerCase())
}
