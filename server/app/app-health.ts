/** The checks of `/readyz`: every part that the workspace needs, and recent failures. */
import { type HealthCheck, Readiness } from '../http/readiness.ts'
import { AppError, isAppError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Operation } from '../lib/observed.ts'
import type { SandboxEngine } from '../sandbox/port.ts'
import type { SessionManager } from '../sessions/sandboxes/session-manager.ts'
import type { Bucket } from '../storage/object-checkpoints/open-bucket.ts'
import type { Store } from '../storage/store.ts'
import { probeFolder, probeStore } from '../storage/write-probe.ts'
import type { AuditLog } from './app-audit.ts'
import { dataPaths } from './data-paths.ts'

export interface Examined {
  engine: SandboxEngine
  store: Store
  sessions: SessionManager
  progress: { readonly current: { message: string } }
  saves: SaveWatch
  bucket?: Bucket | undefined
  auditLog: AuditLog
  dataDir: string
  minFreeMb: number
}

/** A failed save counts until the folder is writable again and this much time has passed without another failure. */
const CALM_MS = 60_000

type Report = (part: string, operation: Operation) => void

/** Remembers whether the files of sessions could be saved recently. */
export class SaveWatch {
  #failure: { error: unknown; at: number } | undefined

  /** Records each operation, then passes it on. */
  before(report: Report = () => {}): Report {
    return (part, operation) => {
      this.#note(part, operation)
      report(part, operation)
    }
  }

  #note(part: string, { name, error }: Operation): void {
    if (part !== 'checkpoints' || (name !== 'commit' && name !== 'addBlob')) return
    if (error === undefined) {
      if (name === 'commit') this.#failure = undefined
      // Other failures concern one session (too many files, invalid entries) and must not make the instance unready.
    } else if (isAppError(error, 'checkpoint_failed')) this.#failure = { error, at: Date.now() }
  }

  /** Throws while saves fail. `probe` throws if they can't be stored now. */
  async check(probe: () => Promise<unknown>): Promise<string> {
    const failure = this.#failure
    if (failure) {
      await probe()
      if (Date.now() - failure.at < CALM_MS) throw failure.error
    }
    return 'saved'
  }
}

export function openReadiness(examined: Examined, logger: Logger): Readiness {
  const { engine, store, sessions, progress, saves, bucket, dataDir, minFreeMb } = examined
  const { audit, sink } = examined.auditLog
  const checks: Record<string, HealthCheck> = {
    engine: async () => `Docker ${(await engine.status()).version}`,
    async store() {
      await probeStore(store.keyValues)
      return `deployment ${await store.sessions.deploymentId()}`
    },
    disk: () => probeFolder(dataDir, minFreeMb),
    checkpoints: () => saves.check(() => bucket?.objects.probe() ?? probeFolder(dataPaths(dataDir).checkpoints, 0)),
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
  return new Readiness(checks, logger)
}
