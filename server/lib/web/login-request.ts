/**
 * The header of every request that a login to a remote server sends. That server names the addresses of these requests, so our own API
 * refuses whatever has it.
 */
export const LOGIN_REQUEST = 'x-mcp-orchestrator-login'
