import { join } from 'node:path'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { createLogger, silentLogger } from '../../lib/logger.ts'
import { FakeEngine } from '../../sandbox/fake-engine.ts'
import type { CheckpointStore } from '../../storage/checkpoint-store.ts'
import { openCheckpointStore } from '../../storage/checkpoints/checkpoint-files.ts'
import { openEmbeddedStore } from '../../storage/embedded/open-embedded-store.ts'
import type { StoredEvent } from '../../storage/event-log.ts'
import { takeOver } from '../../storage/key-value-store.ts'
import type { Store } from '../../storage/store.ts'
import { SessionManager } from './session-manager.ts'
import { DEFAULT_SESSIONS_OPTIONS, type SessionsOptions } from './session-options.ts'

type Wrap = <T extends object>(part: T) => T

export interface FakeSessions {
  dir: string
  store: Store
  engine: FakeEngine
  checkpoints: CheckpointStore
  /** Sessions that were reported as expired. */
  forgotten: string[]
  /** Called with what the managers append. */
  publish: (events: StoredEvent[]) => void
  /** The log lines of the managers. */
  log: Record<string, unknown>[]
  /** `close` stops these. */
  managers: SessionManager[]
  /** `wrap` wraps what the manager uses. */
  create(instanceId: string, options?: Partial<SessionsOptions>, wrap?: Wrap): SessionManager
  start(instanceId: string, options?: Partial<SessionsOptions>): Promise<SessionManager>
  close(): Promise<void>
}

/** Instances on one real store with real checkpoints, whose containers are objects. */
export async function fakeSessions(): Promise<FakeSessions> {
  const dir = temporaryFolder()
  const store = await openEmbeddedStore({ dataDir: dir, logger: silentLogger })
  const engine = new FakeEngine()
  const folder = join(dir, 'checkpoints')
  const checkpoints = openCheckpointStore({ dir: folder, maxSessionBytes: 2 ** 24, logger: silentLogger })
  const managers: SessionManager[] = []
  const forgotten: string[] = []
  const log: FakeSessions['log'] = []
  const logger = createLogger('info', { write: (line: string) => void log.push(JSON.parse(line)) })
  const publish: FakeSessions['publish'] = () => {}
  const create: FakeSessions['create'] = (instanceId, options = {}, wrap = (part) => part) => {
    const { sessions, events } = store
    // Sessions whose ids have the same text before the dash belong to one owner.
    const ownerOf = async (sessionId: string) => sessionId.split('-')[0] ?? ''
    const parts = { engine: wrap(engine), events: wrap(events), checkpoints: wrap(checkpoints), store: wrap(sessions) }
    const deps = { instanceId, ...parts, ownerOf, logger }
    const manager = new SessionManager(
      {
        ...deps,
        cleansForAll: () => takeOver({ ...store, instanceId }, 'janitor', 60_000),
        publish: (_, stored) => fake.publish(stored),
        forgotten: async (sessionId) => void forgotten.push(sessionId)
      },
      { ...DEFAULT_SESSIONS_OPTIONS, warmPoolSize: 0, clockTrustMs: 0, ...options }
    )
    managers.push(manager)
    return manager
  }
  const fake: FakeSessions = {
    ...{ dir, store, engine, checkpoints, forgotten, publish, log, managers, create },
    async start(instanceId, options) {
      const manager = create(instanceId, options)
      await manager.start()
      return manager
    },
    async close() {
      // One that was killed can't sign off.
      await Promise.allSettled(managers.map((manager) => manager.stop()))
      await store.close()
      discard(dir)
    }
  }
  return fake
}
