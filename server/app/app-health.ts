/** What `/readyz` looks at: each part that the workspace can't do without, and what has failed of late. */
import { type HealthCheck, Readiness } from '../http/readiness.ts'
import { AppError, isAppError } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { Operation } from '../lib/observed.ts'
import type { SandboxEngine } from '../sandbox/port.ts'
import type { SessionManager } from '../sessions/sandboxes/session-manager.ts'
import type { Store } from '../storage/store.ts'
import { probeFolder, probeStore } from '../storage/write-probe.ts'
import type { Trail } from './app-audit.ts'
import { dataPaths } from './data-paths.ts'

export interface Examined {
  engine: SandboxEngine
  store: Store
  sessions: SessionManager
  progress: { readonly current: { message: string } }
  saves: SaveWatch
  trail: Trail
  dataDir: string
  minFreeMb: number
}

/** A failed save is forgotten only when the folder can be written again and this long has passed without another. */
const CALM_MS = 60_000

type Report = (part: string, operation: Operation) => void

/** Remembers whether the files of sessions could be saved lately. */
export class SaveWatch {
  #failure: { error: unknown; at: number } | undefined

  /** Notes each operation, then reports it on. */
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
      // Any other failure is of one session: too many files, or entries that make no sense. It must not take all others down.
    } else if (isAppError(error, 'checkpoint_failed')) this.#failure = { error, at: Date.now() }
  }

  /** Throws while saves fail. */
  async check(folder: string): Promise<string> {
    const failure = this.#failure
    if (failure) {
      await probeFolder(folder, 0)
      if (Date.now() - failure.at < CALM_MS) throw failure.error
    }
    return 'saved'
  }
}

export function openReadiness(examined: Examined, logger: Logger): Readiness {
  const { engine, store, sessions, progress, saves, dataDir, minFreeMb } = examined
  const { audit } = examined.trail
  const checks: Record<string, HealthCheck> = {
    engine: async () => `Docker ${(await engine.status()).version}`,
    async store() {
      await probeStore(store.keyValues)
      return `deployment ${await store.sessions.deploymentId()}`
    },
    disk: () => probeFolder(dataDir, minFreeMb),
    checkpoints: () => saves.check(dataPaths(dataDir).checkpoints),
    async audit() {
      if (audit.problem === undefined) return 'written'
      // Written again with the next call: until there is one, only the folder shows whether it can be.
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
