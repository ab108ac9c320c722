/**
 * Decides who may enter a session. A cookie identifies an owner; the session's token identifies a client without one. Only hashes
 * are stored. Ownership outlives the sandbox: a session belongs to whoever opened it until it is deleted.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { headOf } from '../../lib/cut-text.ts'
import { AppError } from '../../lib/errors.ts'
import { plural } from '../../lib/plural.ts'
import type { KeyValueStore } from '../../storage/key-value-store.ts'
import { sessionLost } from '../../storage/store-errors.ts'
import { metaOf, readMeta, type SessionMeta, type StoredMeta, type TitleBy } from './stored-meta.ts'

export interface Proof {
  /** The owner's proven cookie (see `OwnerAccess`). */
  owner?: string | undefined
  /** The session's token, as the client sent it. */
  token?: string | undefined
}

const SESSIONS = 'sessions'
const MAX_TITLE = 120
const ownerSpace = (ownerHash: string) => `owner:${ownerHash}`
const addressSpace = (addressHash: string) => `address:${addressHash}`

export type SessionMarks = Partial<Record<'isPinned' | 'isArchived' | 'isDeleted', boolean>>

export interface OpenOptions {
  wantsToken?: boolean
  /** The token that the client has chosen for a new session: with it, the client can try again if the answer is lost. */
  newToken?: string | undefined
  /** Where the request comes from. */
  address?: string | undefined
  /** The session is a copy: its files are stored before it is opened. */
  isCopy?: boolean
}

/** The settings with the limits. */
export interface SessionLimits {
  MAX_OWNER_SESSIONS: number
  MAX_ADDRESS_SESSIONS: number
}

export interface AccessHooks {
  /** Throws if nobody may open this session, or any further one. */
  checkOpen?(sessionId: string, options: OpenOptions): Promise<void>
  /** Whether sessions that the store does not know were lost with its data. */
  isLost?(): Promise<boolean>
  /** Called when the session's token no longer opens it. */
  revoked?(sessionId: string): void
}

export class SessionAccess {
  readonly #keyValues: KeyValueStore
  readonly #limits: SessionLimits
  readonly #hooks: AccessHooks

  constructor(keyValues: KeyValueStore, limits: SessionLimits, hooks: AccessHooks = {}) {
    this.#keyValues = keyValues
    this.#limits = limits
    this.#hooks = hooks
  }

  /**
   * Opens a new session, or proves that an existing one belongs to the caller. `token` is returned once, to callers without a
   * cookie or on request.
   */
  async open(sessionId: string, proof: Proof, options: OpenOptions = {}): Promise<{ token?: string }> {
    checkSessionId(sessionId)
    const owner = proof.owner ? hash(proof.owner) : null // an empty cookie belongs to nobody
    const address = options.address === undefined ? null : hash(options.address)
    const token = owner === null || options.wantsToken ? (checkedToken(options.newToken) ?? secret()) : undefined
    const known = await this.#read(sessionId)
    if (known) return this.#enter(sessionId, known, proof, options)
    if (owner !== null) await this.#checkRoom(owner)
    if (address !== null) await this.#checkAddress(address)
    await this.#hooks.checkOpen?.(sessionId, options)
    const createdAt = Date.now()
    const tokenHash = token === undefined ? null : hash(token)
    const marks = { titleBy: 'words' as const, pinnedAt: null, archivedAt: null, isDeleted: false }
    const meta: StoredMeta = { owner, address, token: tokenHash, title: '', createdAt, ...marks }
    if (!(await this.#keyValues.add(SESSIONS, sessionId, { ...meta }))) {
      await this.check(sessionId, withChosen(proof, options))
      return {}
    }
    await this.#list(sessionId, meta)
    return token === undefined ? {} : { token }
  }

  async #enter(sessionId: string, meta: StoredMeta, proof: Proof, options: OpenOptions): Promise<{ token?: string }> {
    await this.check(sessionId, withChosen(proof, options))
    // Its opening may have failed before it was listed.
    if (options.newToken !== undefined && !proof.token && hasToken(meta, { token: options.newToken }))
      await this.#list(sessionId, meta)
    return {}
  }

  /** Adds it to the sessions of its owner and of its address. */
  async #list(sessionId: string, { owner, address, createdAt }: StoredMeta): Promise<void> {
    if (owner !== null) await this.#keyValues.set(ownerSpace(owner), sessionId, { usedAt: createdAt })
    if (address !== null) await this.#keyValues.set(addressSpace(address), sessionId, createdAt)
  }

  /** Throws `forbidden`, also for a session that does not exist, so that ids can't be probed. Nobody may enter a deleted one. */
  async check(sessionId: string, proof: Proof): Promise<void> {
    const meta = await this.#read(sessionId)
    if (!meta || (!isOwner(meta, proof) && !hasToken(meta, proof))) throw notYours()
    if (meta.isDeleted) throw deleted()
  }

  /** For callers who may restore a deleted session or delete it for good: its owner, or, if it has none, the holder of its token. */
  async checkDeleted(sessionId: string, proof: Proof): Promise<void> {
    const meta = await this.#read(sessionId)
    if (!meta || !(meta.owner === null ? hasToken(meta, proof) : isOwner(meta, proof))) throw notYours()
  }

  /** For a client that has proven before that it may enter. */
  async checkStillThere(sessionId: string): Promise<void> {
    const meta = await this.#read(sessionId)
    if (!meta && (await this.#hooks.isLost?.())) throw sessionLost()
    if (meta?.isDeleted !== false) throw deleted()
  }

  /** The owner whose credentials its calls use. A session that only a token opens is its own owner. */
  async ownerOf(sessionId: string): Promise<string> {
    return (await this.#read(sessionId))?.owner ?? `session:${sessionId}`
  }

  /** The ids of all sessions of the same owner, including this one. */
  async siblings(sessionId: string): Promise<string[]> {
    const owner = (await this.#read(sessionId))?.owner
    if (!owner) return [sessionId]
    return [...new Set([sessionId, ...(await this.#keyValues.list(ownerSpace(owner))).map(({ key }) => key)])]
  }

  async list(owner: string): Promise<SessionMeta[]> {
    const all = await this.#keyValues.list(ownerSpace(hash(owner)))
    const metas = await Promise.all(
      all.map(async ({ key, value }) => {
        const meta = await this.#read(key)
        return meta ? [metaOf(key, meta, value)] : []
      })
    )
    return metas.flat()
  }

  async hasSessions(owner: string): Promise<boolean> {
    return (await this.#keyValues.list(ownerSpace(hash(owner)))).length > 0
  }

  /** From now on only the owner can open their sessions; clients that used a token are disconnected. */
  async revokeTokens(owner: string): Promise<void> {
    for (const { key: sessionId } of await this.#keyValues.list(ownerSpace(hash(owner)))) {
      const meta = await this.#read(sessionId)
      if (!meta?.token) continue
      await this.#change(sessionId, () => ({ token: null }))
      this.#hooks.revoked?.(sessionId)
    }
  }

  /** The ids of all sessions. */
  async sessionIds(): Promise<string[]> {
    return (await this.#keyValues.list(SESSIONS)).map(({ key }) => key)
  }

  async meta(sessionId: string): Promise<SessionMeta | null> {
    const meta = await this.#read(sessionId)
    if (!meta) return null
    const used = meta.owner === null ? null : await this.#keyValues.get(ownerSpace(meta.owner), sessionId)
    return metaOf(sessionId, meta, used)
  }

  /** A title that the model or the first words gave never replaces a person's. Returns whether the title is now this one. */
  async rename(sessionId: string, title: string, by: TitleBy = 'person'): Promise<boolean> {
    const isKept = (meta: StoredMeta) =>
      by !== 'person' && meta.title !== '' && (meta.titleBy === 'person' || by === 'words')
    const given = { title: headOf(title.trim(), MAX_TITLE), titleBy: by }
    return this.#change(sessionId, (meta) => (isKept(meta) ? null : given))
  }

  /** Returns true to one caller only, while the title consists of the first words. That caller may ask a model for a better title. */
  async claimTitle(sessionId: string): Promise<boolean> {
    return this.#change(sessionId, ({ titleBy }) => (titleBy === 'words' ? { titleBy: 'model' } : null))
  }

  /** Pins or unpins, archives or unarchives, hides for deletion or shows again. */
  async mark(sessionId: string, { isPinned, isArchived, isDeleted }: SessionMarks): Promise<void> {
    const at = (isSet: boolean, known: number | null) => (isSet ? (known ?? Date.now()) : null)
    await this.#change(sessionId, ({ pinnedAt, archivedAt }) => ({
      ...(isPinned !== undefined && { pinnedAt: at(isPinned, pinnedAt) }),
      ...(isArchived !== undefined && { archivedAt: at(isArchived, archivedAt) }),
      ...(isDeleted !== undefined && { isDeleted })
    }))
  }

  /** Call this when something happened in the session: its owner's list is sorted by that time. */
  async noteUse(sessionId: string, at: number): Promise<void> {
    const owner = (await this.#read(sessionId))?.owner
    if (owner) await this.#keyValues.set(ownerSpace(owner), sessionId, { usedAt: at })
  }

  /** Resolves to the name of the owner that it had. */
  async forget(sessionId: string): Promise<string | null> {
    const meta = await this.#read(sessionId)
    if (meta?.owner) await this.#keyValues.remove(ownerSpace(meta.owner), sessionId)
    if (meta?.address) await this.#keyValues.remove(addressSpace(meta.address), sessionId)
    await this.#keyValues.remove(SESSIONS, sessionId)
    return meta?.owner ?? null
  }

  async #checkRoom(ownerHash: string): Promise<void> {
    const all = await this.#keyValues.list(ownerSpace(ownerHash))
    const { MAX_OWNER_SESSIONS: most } = this.#limits
    if (all.length < most) return
    // A person who has just deleted a session to make room does not have to wait.
    const metas = await Promise.all(all.map(({ key }) => this.#read(key)))
    if (metas.filter((meta) => !meta?.isDeleted).length < most) return
    const message = `You have reached the limit of ${plural(most, 'session')}. Delete some to start a new one.`
    throw new AppError('conflict', 'too_many_sessions_of_owner', message)
  }

  /** Anyone can make up owners, so their limits alone would not keep one client from taking all sessions of the server. */
  async #checkAddress(addressHash: string): Promise<void> {
    const { length } = await this.#keyValues.list(addressSpace(addressHash))
    const { MAX_ADDRESS_SESSIONS: most } = this.#limits
    if (length < most) return
    const message = `Your network address has reached its limit of ${plural(most, 'session')}; delete some, or ask the operator to raise MAX_ADDRESS_SESSIONS.`
    throw new AppError('unavailable', 'too_many_sessions_of_address', message)
  }

  async #read(sessionId: string): Promise<StoredMeta | null> {
    return readMeta(await this.#keyValues.get(SESSIONS, sessionId))
  }

  /** Repeated if someone else has changed it meanwhile, so that no change is lost. `change` returns null to leave it as it is. */
  async #change(sessionId: string, change: (meta: StoredMeta) => Partial<StoredMeta> | null): Promise<boolean> {
    for (;;) {
      const stored = await this.#keyValues.get(SESSIONS, sessionId)
      const meta = readMeta(stored)
      const changed = meta && change(meta)
      if (!meta || !changed) return false
      if (await this.#keyValues.replace(SESSIONS, sessionId, stored, { ...meta, ...changed })) return true
    }
  }
}

function isOwner({ owner }: StoredMeta, proof: Proof): boolean {
  return owner !== null && !!proof.owner && same(owner, hash(proof.owner))
}

function hasToken({ token }: StoredMeta, proof: Proof): boolean {
  return token !== null && !!proof.token && same(token, hash(proof.token))
}

/** A client that opened the session and never heard of it has only the token that it has chosen. */
function withChosen(proof: Proof, { newToken }: OpenOptions): Proof {
  return { ...proof, token: proof.token || newToken }
}

function checkedToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\w-]{43,100}$/.test(token)) return token
  const message = '"newToken" must be 32 random bytes as base64url.'
  throw new AppError('invalid', 'invalid_request', message)
}

function notYours(): AppError {
  return new AppError('forbidden', 'forbidden', 'This session belongs to someone else.')
}

function deleted(): AppError {
  return new AppError('not-found', 'unknown_session', 'The session was deleted.')
}

export function checkSessionId(sessionId: string): string {
  if (/^[A-Za-z0-9_-]{1,100}$/.test(sessionId)) return sessionId
  const message = 'A session id must have 1 to 100 letters, digits, dashes and underscores.'
  throw new AppError('invalid', 'invalid_session_id', message)
}

export function secret(): string {
  return randomBytes(32).toString('base64url')
}

/** An owner's name wherever it is stored or shown. The cookie itself is the proof and stays in the browser. */
export function ownerName(cookie: string): string {
  return hash(cookie)
}

/** Compares in constant time, whatever the lengths. */
export function sameSecret(a: string, b: string): boolean {
  return same(hash(a), hash(b))
}

function hash(value: string): string {
  return createHash('sha256').update(value).digest('hex')
}

function same(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
