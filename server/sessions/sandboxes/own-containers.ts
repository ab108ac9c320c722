/** Remembers the containers that this instance uses, so that a shutdown can name what is left when the engine no longer answers. */
import { BoundedMap } from '../../lib/bounded-map.ts'
import type { SandboxEngine } from '../../sandbox/port.ts'

/** More than any instance has at once. Containers that another instance takes over and removes stay in the map. */
const MAX_KNOWN = 10_000
const WATCHED = new Set<PropertyKey>(['create', 'connect', 'pause', 'unpause', 'remove'])

export class OwnContainers {
  /** By id: whether it is paused. All files are saved before that. */
  readonly #paused = new BoundedMap<string, boolean>(MAX_KNOWN)

  /** The ids of containers that this instance has created or opened, and not removed. */
  get ids(): ReadonlySet<string> {
    return new Set(this.#paused.keys())
  }

  /** Whether this instance has opened it and may not have saved all its files. */
  mayBeUnsaved(containerId: string): boolean {
    return this.#paused.get(containerId) === false
  }

  /** The same engine, with what it does to containers noted here. */
  watch(engine: SandboxEngine): SandboxEngine {
    return new Proxy(engine, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function') return value
        if (!WATCHED.has(name)) return value.bind(target)
        return async (...args: unknown[]) => {
          const answer: unknown = await Reflect.apply(value, target, args)
          this.#note(name, String(name === 'create' ? answer : args[0]))
          return answer
        }
      }
    })
  }

  #note(verb: PropertyKey, containerId: string): void {
    if (verb === 'remove') this.#paused.delete(containerId)
    else this.#paused.set(containerId, verb === 'pause')
  }
}
