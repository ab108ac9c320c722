/** Bugs that the checker has to find: each is one change to the product's own source, as a slip of a hand would make it. */
export interface PlantedBug {
  file: string
  /** Must be in the source word for word: after a rename, the walk would otherwise plant nothing. */
  replace: string
  by: string
  /** The checker's message about the bug. */
  caught: RegExp
}

export const PLANTED_BUGS: Record<string, PlantedBug> = {
  /** Some messages are acknowledged and never stored. */
  'lost-message': {
    file: '/server/sessions/chat/chat.ts',
    replace: 'const sent = await this.#once(',
    by: 'if (Math.random() < 0.2) return { turnId: event.data.turnId }\n    const sent = await this.#once(',
    caught: /was accepted and is in no transcript/
  },
  /** Uploads are acknowledged and never stored. */
  'lost-upload': {
    file: '/server/sessions/files/workspace-transfer.ts',
    replace: 'async write(sessionId: string, path: string, content: Buffer): Promise<void> {',
    by: 'async write(sessionId: string, path: string, content: Buffer): Promise<void> {\n    return',
    caught: /the upload of .* is not in the log/
  },
  /** Every call is silently run a second time. */
  'double-run': {
    file: '/server/sessions/sandboxes/run-sandbox-tool.ts',
    replace: 'const result = await connection\n      .callTool(',
    by: 'await connection.callTool(name, args, { ...rest, timeoutMs: TOOL_TIMEOUT_MS })\n    const result = await connection\n      .callTool(',
    caught: /ran 2 times/
  },
  /** A review brings everything into the workspace, whatever was accepted. */
  'all-accepted': {
    file: '/server/sessions/sandboxes/forks/forked-work.ts',
    replace: 'acceptedPart(session.sandbox.saved.entries, set.changes, accept)',
    by: "acceptedPart(session.sandbox.saved.entries, set.changes, accept === 'none' ? 'none' : 'all')",
    caught: /was rejected and is in the workspace/
  },
  /** A fork that is closed leaves its container behind. */
  'leaked-fork': {
    file: '/server/sessions/sandboxes/forks/session-fork.ts',
    replace: 'await deps.engine.remove(containerId)',
    by: 'false',
    caught: /belongs to no session/
  },
  /** Nobody cleans up after an instance that was killed. */
  'leaked-container': {
    file: '/server/sessions/sandboxes/janitor.ts',
    replace: 'await engine.remove(id)',
    by: 'false',
    caught: /belongs to no session/
  }
}
