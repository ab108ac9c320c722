/** Connects the values of `/metrics` to the parts that know them. They are read on every scrape. */
import type { StatsFs } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { callOf } from '../../contract/transcript.ts'
import { serverFigures } from '../connections/server-state.ts'
import type { Metrics } from '../http/metrics.ts'
import type { Readiness } from '../http/readiness.ts'
import type { ReportRefusal } from '../lib/refusals.ts'
import type { ApprovalInbox } from '../policy/approval-inbox.ts'
import type { Quotas, QuotaUse } from '../sessions/access/quotas.ts'
import type { Chat } from '../sessions/chat/chat.ts'
import type { SessionFeed } from '../sessions/feed/session-feed.ts'
import type { SessionManager } from '../sessions/sandboxes/session-manager.ts'
import type { SocketServer } from '../socket/create-socket-server.ts'
import type { StoredEvent } from '../storage/event-log.ts'
import type { Store } from '../storage/store.ts'
import type { AuditLog } from './app-audit.ts'
import type { GatewayApp } from './app-gateway.ts'

export interface Watched {
  store: Store
  sessions: SessionManager
  feed: SessionFeed
  gateway: GatewayApp
  inbox: ApprovalInbox
  auditLog: AuditLog
  sockets: SocketServer
  readiness: Readiness
  dataDir: string
  quotas: Quotas
  refused: ReportRefusal
}

const SAME_ON_ALL = 'Every instance reports the same number: take the maximum, not the sum.'

export function watchFigures(metrics: Metrics, watched: Watched): void {
  const { store, sessions, feed, gateway, inbox, auditLog, sockets, dataDir } = watched
  metrics.watch({
    live_sandboxes: { help: 'Sandboxes that this instance is connected to.', read: () => sessions.liveSandboxes },
    warm_sandboxes: { help: 'Sandboxes kept ready by this instance.', read: () => sessions.pool.ready },
    open_forks: { help: 'Forks that are open on this instance.', read: () => sessions.openForks },
    sockets: { help: 'Open connections of pages and clients.', read: () => sockets.count() },
    deployment_live_sandboxes: {
      help: `Sandboxes of all instances. ${SAME_ON_ALL}`,
      read: () => store.sessions.countLive()
    },
    deployment_approvals_waiting: {
      help: `Gateway calls that wait in the inbox. ${SAME_ON_ALL}`,
      read: async () => (await inbox.open()).length
    },
    audit_failing: { help: '1: nothing can be recorded.', read: () => (auditLog.audit.problem === undefined ? 0 : 1) },
    audit_unshipped_bytes: {
      help: 'Bytes of the audit log that are not in the bucket yet; 0 without a bucket.',
      read: () => auditLog.sink?.shipper.lag.bytes ?? 0
    },
    audit_unshipped_seconds: {
      help: 'For how long rows of the audit log could not be copied to the bucket.',
      read: () => auditLog.sink?.shipper.lag.seconds ?? 0
    },
    data_free_bytes: { help: 'Free space where DATA_DIR is.', read: async () => space(await statfs(dataDir)).free },
    data_total_bytes: { help: 'Size of the disk of DATA_DIR.', read: async () => space(await statfs(dataDir)).total }
  })
  watchQuotas(metrics, watched.quotas)
  for (const part of watched.readiness.parts()) {
    const read = () => (watched.readiness.isFailing(part) ? 1 : 0)
    metrics.watch({ [`not_ready_${part}`]: { help: `1: /readyz answers 503 because of this part (${part}).`, read } })
  }
  metrics.watchServers(() => {
    const connections = gateway.loaded()?.connections
    return connections ? serverFigures(gateway.registry().servers.keys(), connections) : []
  })
  feed.subscribe({
    emptied: () => metrics.core.storeEmptied(),
    stored(_sessionId, events) {
      for (const event of events) {
        const { type, data } = event
        const failed = failedChanges(event)
        if (failed) metrics.core.changesFailed(failed)
        if (type === 'mode:selected') metrics.core.modeChanged(String(data.mode))
        if (type === 'turn:end') metrics.core.turnEnded(String(data.reason))
        if (type === 'agent:error') watched.refused({ face: 'chat', code: String(data.code) })
      }
    }
  })
}

function failedChanges({ type, data }: StoredEvent): 'wait' | 'refused' | undefined {
  if (type === 'session:notice' && data.code === 'changes_unsaved') return 'wait'
  if (type === 'review:applied' && data.problem !== undefined) return 'refused'
  const isAskedAgain = type === 'tool:approval_required' && data.ahead === 'preview' && data.again !== undefined
  return isAskedAgain && !(data.again as { isEdited?: true }).isEdited ? 'refused' : undefined
}

/** The instance that ran the call is gone and can't count it. */
export async function countInterrupted(
  { observer }: Metrics,
  chat: Pick<Chat, 'transcript'>,
  sessionId: string,
  callId: string
): Promise<void> {
  const transcript = await chat.transcript(sessionId).catch(() => ({ calls: {} }))
  const server = callOf(transcript, callId)?.server ?? 'other'
  observer.called({ server, door: 'chat', outcome: 'unknown', ms: undefined, attempts: 1 })
}

/** Limits together with their usage, so that an alert needs no copy of the settings. */
function watchQuotas(metrics: Metrics, quotas: Quotas): void {
  const { limits } = quotas
  const gauge = (name: string, limitName: string, help: string, setting: string, part: keyof QuotaUse) =>
    metrics.watch({
      [`deployment_${name}`]: { help: `${help} ${SAME_ON_ALL}`, read: async () => (await quotas.use())[part] },
      [`deployment_${limitName}`]: { help: `The limit ${setting}. ${SAME_ON_ALL}`, read: () => limits[part] }
    })
  const files = 'Bytes of saved files of all sessions, measured at most every few minutes.'
  const log = 'Bytes of stored conversations of all sessions, as of the last minute.'
  const sessions = 'Stored sessions of all owners, as of the last minute.'
  gauge('files_bytes', 'files_limit_bytes', files, 'MAX_FILES_MB', 'files')
  gauge('log_bytes', 'log_limit_bytes', log, 'MAX_LOG_MB', 'log')
  gauge('stored_sessions', 'stored_sessions_limit', sessions, 'MAX_STORED_SESSIONS', 'sessions')
}

function space({ bavail, blocks, bsize }: StatsFs): { free: number; total: number } {
  return { free: bavail * bsize, total: blocks * bsize }
}
