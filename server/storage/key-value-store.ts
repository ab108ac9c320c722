/** Small facts that belong to no log: who owns a session, which tool definition was accepted. Values are JSON, spaces are flat. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

export interface KeyValueStore {
  get(space: string, key: string): Promise<Json>
  /** False when the key is there already: of several, one wins. */
  add(space: string, key: string, value: Json): Promise<boolean>
  set(space: string, key: string, value: Json): Promise<void>
  remove(space: string, key: string): Promise<void>
  list(space: string): Promise<{ key: string; value: Json }[]>
}
