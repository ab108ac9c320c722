import { join, resolve } from 'node:path'

/** The files and folders of each part below DATA_DIR. */
export function dataPaths(dataDir: string) {
  const root = resolve(dataDir)
  return {
    root,
    audit: join(root, 'audit'),
    /** The audit logs of the other instances, as last read from the bucket. */
    auditCopies: join(root, 'audit-copies'),
    /** The embedding model of this machine, if the user installed it. */
    embeddings: join(root, 'embeddings'),
    checkpoints: join(root, 'checkpoints'),
    /** The servers of the public MCP Registry, as last fetched. */
    listing: join(root, 'mcp-registry.jsonl'),
    /** Copies of objects, if the files of sessions are in a bucket. */
    objects: join(root, 'object-cache'),
    logins: join(root, 'logins'),
    serverLogs: join(root, 'server-logs')
  }
}
