/** The checks of `/readyz`: every part that the workspace needs. */
import { type HealthCheck, Readiness } from '../http/readiness.ts'
import { AppError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { SandboxEngine } from '../sandbox/port.ts'
import type { SessionManager } from '../sessions/sandboxes/session-manager.ts'
import type { Bucket } from '../storage/object-checkpoints/open-bucket.ts'
import type { Store } from '../storage/store.ts'
import { probeFolder, probeStore } from '../storage/write-probe.ts'
import type { AuditLog } from './app-audit.ts'
import type { BucketWatch } from './bucket-watch.ts'
import { dataPaths } from './data-paths.ts'

export interface Examined {
  engine: SandboxEngine
  store: Store
  sessions: SessionManager
  progress: { readonly current: { message: string } }
  saves: BucketWatch
  bucket?: Bucket | undefined
  auditLog: AuditLog
  dataDir: string
  minFreeMb: number
}

export function openReadiness(examined: Examined, logger: Logger): Readiness {
  const { engine, store, sessions, progress, saves, bucket, dataDir, minFreeMb } = examined
  const { audit, sink } = examined.auditLog
  const checks: Record<string, HealthCheck> = {
    async engine() {
      const { name, version } = await engine.status()
      return `${name} ${version}`
    },
    async store() {
      await probeStore(store.keyValues)
      const since = sessions.emptiedAt && `; it was emptied, as noticed at ${sessions.emptiedAt.toISOString()}`
      return `deployment ${await store.sessions.deploymentId()}${since ?? ''}`
    },
    disk: () => probeFolder(dataDir, minFreeMb),
    // Whether this instance can save at all. A session that can't be saved is that session's error.
    async checkpoints() {
      if (bucket) return saves.check()
      await probeFolder(dataPaths(dataDir).checkpoints, 0)
      return 'saved'
    },
    async audit() {
      const behind = sink?.shipper.refusal
      if (behind !== undefined) throw new AppError('unavailable', 'audit_unavailable', behind)
      if (audit.problem === undefined) return 'written'
      // The next call writes again. Until then, check only whether the folder is writable.
      await probeFolder(dataPaths(dataDir).audit, 0)
      return `can be written again; before: ${audit.problem}`
    },
    async leftovers() {
      if (sessions.isSwept) return 'none of earlier instances'
      throw new AppError('unavailable', 'starting', 'Containers that earlier instances left are being removed.')
    },
    async image() {
      if (await engine.hasImage()) return 'ready'
      throw new AppError('unavailable', 'image_missing', progress.current.message)
    }
  }
  return new Readiness(checks, logger, bucket && saves)
}
