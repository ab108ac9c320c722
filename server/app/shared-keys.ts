/**
 * Carries the keys of model providers to all instances on a store. Invariant: the store never has a key that can be read without the
 * admin token, which all these instances have.
 */
import { keyOf, openText, sealText } from '../lib/sealing.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'

const SPACE = 'provider-keys'

/** null: an administrator has removed it. */
export type EnteredKeys = Record<string, string | null>

export interface SharedKeys {
  /** `unreadable` lists the providers whose key was stored with another admin token. */
  read(): Promise<{ keys: EnteredKeys; unreadable: string[] }>
  write(provider: string, key: string | null): Promise<void>
}

export function openSharedKeys(keyValues: KeyValueStore, adminToken: string): SharedKeys {
  const secret = keyOf(adminToken, SPACE)
  // The name of the provider is the context, so that nobody can send the key of one provider to another.
  const open = (provider: string, value: unknown) => (value === null ? null : openText(secret, provider, String(value)))
  return {
    async read() {
      const rows = await keyValues.list(SPACE)
      const read = rows.map(({ key: provider, value }) => [provider, open(provider, value)] as const)
      const keys = Object.fromEntries(read.flatMap(([id, key]) => (key === undefined ? [] : [[id, key]])))
      return { keys, unreadable: read.flatMap(([id, key]) => (key === undefined ? [id] : [])) }
    },
    write: (provider, key) => keyValues.set(SPACE, provider, key === null ? null : sealText(secret, provider, key))
  }
}
