/** Adds a value to the set of this key. */
export function put<T>(map: Map<string, Set<T>>, key: string, value: T): void {
  map.set(key, (map.get(key) ?? new Set()).add(value))
}

/** Removes a value from the set of this key, and a set that is then empty. */
export function take<T>(map: Map<string, Set<T>>, key: string, value: T): void {
  const known = map.get(key)
  known?.delete(value)
  if (known?.size === 0) map.delete(key)
}
