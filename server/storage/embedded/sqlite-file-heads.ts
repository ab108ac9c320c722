import { type FileHeads, type HeadChange, MAX_UPLOAD_AGE_MS, type SwapResult } from '../file-heads.ts'
import { validSessionId } from '../session-id.ts'
import type { Database } from './database.ts'

export function sqliteFileHeads(db: Database): FileHeads {
  return {
    async read(sessionId) {
      const row = db.get('SELECT files_head FROM sessions WHERE session_id = ?', validSessionId(sessionId))
      return typeof row?.files_head === 'string' ? row.files_head : null
    },
    swap: async (sessionId, change) => swap(db, sessionId, change),
    async clear(sessionId, epoch) {
      const sql = 'UPDATE sessions SET files_head = NULL WHERE session_id = ? AND epoch = ?'
      return db.run(sql, validSessionId(sessionId), epoch) > 0
    },
    async list() {
      const rows = db.all('SELECT session_id, files_head FROM sessions WHERE files_head IS NOT NULL')
      return new Map(rows.map((row) => [String(row.session_id), String(row.files_head)]))
    }
  }
}

function swap(db: Database, sessionId: string, { epoch, known, next, since }: HeadChange): SwapResult {
  return db.transaction(() => {
    const row = db.get('SELECT epoch, files_head FROM sessions WHERE session_id = ?', validSessionId(sessionId))
    if (row?.epoch !== epoch) return 'lost'
    if (Date.now() - since > MAX_UPLOAD_AGE_MS) return 'late'
    if (row.files_head === next) return 'ok'
    if (row.files_head !== known) return 'changed'
    db.run('UPDATE sessions SET files_head = ? WHERE session_id = ?', next, sessionId)
    return 'ok'
  })
}
