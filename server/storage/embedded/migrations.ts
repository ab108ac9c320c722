/**
 * Each entry raises the schema by one version (PRAGMA user_version). Never edit an entry after its release; only add new ones.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE instances (
    instance_id TEXT PRIMARY KEY,
    alive_until INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    holder TEXT,
    lease_until INTEGER NOT NULL,
    busy INTEGER NOT NULL,
    live INTEGER NOT NULL,
    container_id TEXT,
    created_at INTEGER NOT NULL,
    active_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_live ON sessions (active_at) WHERE live = 1;

  CREATE TABLE events (
    session_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (session_id, seq)
  ) STRICT;

  CREATE TABLE facts (
    space TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (space, key)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE event_keys (
    session_id TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (session_id, key)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  CREATE TABLE log_sizes (
    session_id TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  INSERT INTO log_sizes SELECT session_id, SUM(octet_length(body)) FROM events GROUP BY session_id;
  `,
  `
  CREATE TABLE large_values (
    session_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (session_id, hash)
  ) STRICT;
  `,
  `
  ALTER TABLE sessions ADD COLUMN files_head TEXT;
  `
]
