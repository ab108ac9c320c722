import { type Operation, observed } from '../lib/observed.ts'
import type { CheckpointStore } from './checkpoint-store.ts'
import type { Store } from './store.ts'

type Report = (part: string, operation: Operation) => void

/** Reports every operation of the store under the name of its part. */
export function observedStore(store: Store, report: Report): Store {
  return {
    sessions: observed(store.sessions, (operation) => report('sessions', operation)),
    events: observed(store.events, (operation) => report('events', operation)),
    keyValues: observed(store.keyValues, (operation) => report('keys', operation)),
    heads: observed(store.heads, (operation) => report('heads', operation)),
    close: () => store.close()
  }
}

/** Reports every operation of the checkpoints, including those on an open checkpoint. */
export function observedCheckpoints(checkpoints: CheckpointStore, report: Report): CheckpointStore {
  const watch = <T extends object>(port: T) => observed(port, (operation) => report('checkpoints', operation))
  const store = watch(checkpoints)
  return { ...store, open: async (sessionId, epoch) => watch(await store.open(sessionId, epoch)) }
}
