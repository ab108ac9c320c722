/** Settings for measured servers: one benchmark sends more than a person or a client may. */
export const NO_LIMITS = {
  MESSAGES_PER_MINUTE: '100000',
  COMMANDS_PER_MINUTE: '100000',
  REQUESTS_PER_MINUTE: '1000000',
  CONNECTIONS_PER_MINUTE: '1000000',
  MAX_CONNECTIONS: '100000',
  MAX_PENDING_CONNECTIONS: '10000',
  MCP_REQUESTS_PER_MINUTE: '10000000'
}
