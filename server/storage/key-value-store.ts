/**
 * A store for small values that belong to no log, such as a session's owner or an accepted tool definition. Values are JSON;
 * spaces are flat.
 */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export interface KeyValueStore {
  get(space: string, key: string): Promise<Json>
  /** Returns false if the key exists. Only one of several concurrent adds succeeds. */
  add(space: string, key: string, value: Json): Promise<boolean>
  set(space: string, key: string, value: Json): Promise<void>
  remove(space: string, key: string): Promise<void>
  list(space: string): Promise<{ key: string; value: Json }[]>
}
