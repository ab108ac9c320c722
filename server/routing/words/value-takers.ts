/** Knows which tools take a value of a kind, so that the values of a request can count. */
import { kindsTaken } from './mask-literals.ts'
import { put, take } from './set-map.ts'

export function createValueTakers() {
  const byKind = new Map<string, Set<number>>()
  return {
    add(slot: number, params: string): void {
      for (const kind of kindsTaken(params)) put(byKind, kind, slot)
    },
    remove(slot: number): void {
      for (const kind of [...byKind.keys()]) take(byKind, kind, slot)
    },
    of: (kinds: Iterable<string>): Set<number> => new Set([...kinds].flatMap((kind) => [...(byKind.get(kind) ?? [])]))
  }
}
