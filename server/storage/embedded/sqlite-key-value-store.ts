import type { Json, KeyValueStore } from '../key-value-store.ts'
import type { Database } from './database.ts'

export function sqliteKeyValueStore(db: Database): KeyValueStore {
  return {
    get: async (space, key) => {
      const row = db.get('SELECT value FROM facts WHERE space = ? AND key = ?', space, key)
      return row ? decode(row.value) : null
    },
    add: async (space, key, value) =>
      db.run('INSERT OR IGNORE INTO facts VALUES (?, ?, ?)', space, key, JSON.stringify(value)) > 0,
    set: async (space, key, value) => {
      db.run('INSERT OR REPLACE INTO facts VALUES (?, ?, ?)', space, key, JSON.stringify(value))
    },
    replace: async (space, key, known, value) => {
      const sql = 'UPDATE facts SET value = ? WHERE space = ? AND key = ? AND value = ?'
      return db.run(sql, JSON.stringify(value), space, key, JSON.stringify(known)) > 0
    },
    remove: async (space, key) => {
      if (db.run('DELETE FROM facts WHERE space = ? AND key = ?', space, key) > 0) db.scrubSoon()
    },
    list: async (space) =>
      db.all('SELECT key, value FROM facts WHERE space = ? ORDER BY key', space).map((row) => {
        return { key: String(row.key), value: decode(row.value) }
      })
  }
}

const decode = (value: unknown): Json => JSON.parse(String(value)) as Json
