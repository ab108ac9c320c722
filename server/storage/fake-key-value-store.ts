import type { Json, KeyValueStore } from './key-value-store.ts'

export function fakeKeyValueStore(): KeyValueStore {
  const spaces = new Map<string, Map<string, Json>>()
  const space = (name: string) => {
    const found = spaces.get(name) ?? new Map<string, Json>()
    spaces.set(name, found)
    return found
  }
  return {
    get: async (name, key) => space(name).get(key) ?? null,
    add: async (name, key, value) => !space(name).has(key) && Boolean(space(name).set(key, value)),
    set: async (name, key, value) => void space(name).set(key, structuredClone(value)),
    replace: async (name, key, known, value) =>
      JSON.stringify(space(name).get(key)) === JSON.stringify(known) && Boolean(space(name).set(key, value)),
    remove: async (name, key) => void space(name).delete(key),
    list: async (name) => [...space(name)].map(([key, value]) => ({ key, value }))
  }
}
