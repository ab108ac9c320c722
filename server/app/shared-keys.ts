/**
 * Carries the keys of model providers to all instances on a store. Invariant: the store never has a key that can be read without the
 * admin token, which all these instances have.
 */
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto'
import type { KeyValueStore } from '../storage/key-value-store.ts'

const SPACE = 'provider-keys'
const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

/** null: an administrator has removed it. */
export type EnteredKeys = Record<string, string | null>

export interface SharedKeys {
  /** `unreadable` lists the providers whose key was stored with another admin token. */
  read(): Promise<{ keys: EnteredKeys; unreadable: string[] }>
  write(provider: string, key: string | null): Promise<void>
}

export function openSharedKeys(keyValues: KeyValueStore, adminToken: string): SharedKeys {
  const secret = scryptSync(adminToken, SPACE, 32)
  return {
    async read() {
      const rows = await keyValues.list(SPACE)
      const read = rows.map(({ key: provider, value }) => [provider, open(secret, provider, value)] as const)
      const keys = Object.fromEntries(read.flatMap(([id, key]) => (key === undefined ? [] : [[id, key]])))
      return { keys, unreadable: read.flatMap(([id, key]) => (key === undefined ? [id] : [])) }
    },
    write: (provider, key) => keyValues.set(SPACE, provider, key === null ? null : seal(secret, provider, key))
  }
}

/** The name of the provider is part of it, so that nobody can send the key of one provider to another. */
function seal(secret: Buffer, provider: string, key: string): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, secret, iv).setAAD(Buffer.from(provider))
  const sealed = Buffer.concat([cipher.update(key, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64')
}

function open(secret: Buffer, provider: string, value: unknown): string | null | undefined {
  if (value === null) return null
  const bytes = Buffer.from(String(value), 'base64')
  const body = IV_BYTES + TAG_BYTES
  try {
    const decipher = createDecipheriv(CIPHER, secret, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(provider)).setAuthTag(bytes.subarray(IV_BYTES, body))
    return Buffer.concat([decipher.update(bytes.subarray(body)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}
