/**
 * Encrypts small texts for a store that others can read. The context (a name, a purpose) is part of the seal: a text that is moved to
 * another place there can't be opened. Invariant: a changed byte, another context or another key opens nothing.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes, scryptSync } from 'node:crypto'

const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
const SEALED = /^v1\.([0-9a-f]{8})\.([\w+/=]+)$/

export function keyOf(secret: string, purpose: string): Buffer {
  return scryptSync(secret, purpose, KEY_BYTES)
}

export function sealText(key: Buffer, context: string, text: string): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, key, iv).setAAD(Buffer.from(context))
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64')
}

/** Returns undefined if it can't be opened. */
export function openText(key: Buffer, context: string, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64')
  const body = IV_BYTES + TAG_BYTES
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(IV_BYTES, body))
    return Buffer.concat([decipher.update(bytes.subarray(body)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

/** Seals with the first secret, and opens what was sealed with any of them, so that a secret can be replaced. */
export class Sealer {
  readonly #keys: ReadonlyMap<string, Buffer>
  readonly #current: string

  constructor(secrets: readonly [string, ...string[]], purpose: string) {
    const keys = secrets.map((secret) => keyOf(secret, purpose))
    const named = keys.map((key) => [createHash('sha256').update(key).digest('hex').slice(0, 8), key] as const)
    this.#keys = new Map(named.toReversed())
    this.#current = named[0]?.[0] ?? ''
  }

  seal(context: string, text: string): string {
    const key = this.#keys.get(this.#current)
    if (!key) throw new Error('there is no key')
    return `v1.${this.#current}.${sealText(key, context, text)}`
  }

  open(context: string, sealed: unknown): string | undefined {
    const [, name = '', body = ''] = SEALED.exec(String(sealed)) ?? []
    const key = this.#keys.get(name)
    return key && openText(key, context, body)
  }

  /** Whether it was sealed with the first secret. */
  isCurrent(sealed: unknown): boolean {
    return SEALED.exec(String(sealed))?.[1] === this.#current
  }
}
