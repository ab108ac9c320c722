import type { ApprovalCard } from '../../contract/rest.ts'

/** A call of an outside client, as it waits in the inbox of the fake server. */
export function inboxCard(id: string, args: Record<string, unknown> = { id }): ApprovalCard {
  return {
    ...{ id, server: 'notes', tool: 'write', args, hash: `hash-${id}`, asker: { door: 'stdio' } },
    ...{ createdAt: Date.now(), expiresAt: Date.now() + 600_000 }
  }
}
