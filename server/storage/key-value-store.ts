/**
 * A store for small values that belong to no log, such as a session's owner or an accepted tool definition. Values are JSON;
 * spaces are flat.
 */
import { randomBytes } from 'node:crypto'
import { isRecord } from '../lib/is-record.ts'

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const SECRETS = 'gateway-keys'

export interface KeyValueStore {
  get(space: string, key: string): Promise<Json>
  /** Returns false if the key exists. Only one of several concurrent adds succeeds. */
  add(space: string, key: string, value: Json): Promise<boolean>
  set(space: string, key: string, value: Json): Promise<void>
  /** Returns false, and changes nothing, if the value is no longer the one that `get` returned. */
  replace(space: string, key: string, known: Json, value: Json): Promise<boolean>
  remove(space: string, key: string): Promise<void>
  list(space: string): Promise<{ key: string; value: Json }[]>
}

/** A secret that all instances on a store share. The first one to ask for it makes it. */
export async function sharedSecret(keyValues: Pick<KeyValueStore, 'get' | 'add'>, name: string): Promise<string> {
  const known = await keyValues.get(SECRETS, name)
  if (typeof known === 'string') return known
  const fresh = randomBytes(32).toString('base64url')
  return (await keyValues.add(SECRETS, name, fresh)) ? fresh : String(await keyValues.get(SECRETS, name))
}

export interface TurnOptions {
  keyValues: Pick<KeyValueStore, 'get' | 'add' | 'replace'>
  sessions: { now(): Promise<number> }
  instanceId: string
}

type Successor = TurnOptions & { sessions: { endedInstances(): Promise<string[]> } }

/** Claims work that only one instance should do at a time. If it returns true, the others leave the work alone for `ms`. */
export async function takeTurn(options: TurnOptions, space: string, ms: number): Promise<boolean> {
  return turnOf(options, space, ms, async () => false)
}

/** The same for work that two instances may do at the same time for once: an instance that has ended leaves its turn to the others. */
export async function takeOver(options: Successor, space: string, ms: number): Promise<boolean> {
  const hasEnded = async (holder: unknown) => (await options.sessions.endedInstances()).some((id) => id === holder)
  return turnOf(options, space, ms, hasEnded)
}

async function turnOf(
  { keyValues, sessions, instanceId }: TurnOptions,
  space: string,
  ms: number,
  hasEnded: (holder: unknown) => Promise<boolean>
): Promise<boolean> {
  const now = await sessions.now()
  const turn = { holder: instanceId, until: now + ms }
  const held = await keyValues.get(space, 'turn')
  if (held === null) return keyValues.add(space, 'turn', turn)
  const isFree = !isRecord(held) || held.holder === instanceId || Number(held.until) <= now
  return (isFree || (await hasEnded(held.holder))) && keyValues.replace(space, 'turn', held, turn)
}
