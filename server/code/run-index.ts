/**
 * The list of runs: whose each is, what it waits for, and which instance drives it. Owns leases, not the runs: what happened is in
 * the log of each run. Only one instance gets a lease; one that has not been renewed in time is free for others.
 */
import { isRecord } from '../lib/is-record.ts'
import type { Json, KeyValueStore } from '../storage/key-value-store.ts'

const SPACE = 'code-runs'
const MAX_CHANGES = 5

/** The caller that started a run. Nothing proves the name of the client. */
export interface RunAsker {
  owner: string
  door: 'stdio' | 'http'
  client?: string
}

export interface RunEntry extends RunAsker {
  /** The processes with the same servers, which may continue it by themselves. */
  home: string
  /** The cards that it waits for. */
  cards: string[]
  createdAt: number
  /** The time at which a waiting run is given up. */
  expiresAt: number
  status: 'running' | 'waiting' | 'ended'
  holder: string
  leaseUntil: number
  endedAt: number
  /** The beginning of the program, for the person. */
  head: string
  /** How many calls it had made when its process last said so. */
  calls: number
  /** Why it has not begun or does not continue; empty otherwise. */
  reason: string
}

export class RunIndex {
  readonly #keyValues: KeyValueStore

  constructor(keyValues: KeyValueStore) {
    this.#keyValues = keyValues
  }

  async add(runId: string, entry: RunEntry): Promise<void> {
    await this.#keyValues.add(SPACE, runId, { ...entry })
  }

  async get(runId: string): Promise<RunEntry | undefined> {
    return readEntry(await this.#keyValues.get(SPACE, runId))
  }

  /** Returns the changed entry, or undefined if it is not there, or `change` returns undefined, or others change it all the time. */
  async change(
    runId: string,
    change: (entry: RunEntry) => Partial<RunEntry> | undefined
  ): Promise<RunEntry | undefined> {
    for (let attempt = 0; attempt < MAX_CHANGES; attempt++) {
      const stored = await this.#keyValues.get(SPACE, runId)
      const entry = readEntry(stored)
      const changes = entry && change(entry)
      if (!entry || !changes) return undefined
      const next = { ...entry, ...changes }
      if (await this.#keyValues.replace(SPACE, runId, stored, { ...next })) return next
    }
    return undefined
  }

  async list(): Promise<{ runId: string; entry: RunEntry }[]> {
    return (await this.#keyValues.list(SPACE)).flatMap(({ key, value }) => {
      const entry = readEntry(value)
      return entry ? [{ runId: key, entry }] : []
    })
  }

  async remove(runId: string): Promise<void> {
    await this.#keyValues.remove(SPACE, runId)
  }
}

/** Another version of this program may have written it. */
function readEntry(value: Json): RunEntry | undefined {
  if (!isRecord(value)) return undefined
  const { owner, status, holder, home, client, door, createdAt, expiresAt, leaseUntil, endedAt } = value
  const isStatus = status === 'running' || status === 'waiting' || status === 'ended'
  if (typeof owner !== 'string' || typeof holder !== 'string' || !isStatus) return undefined
  const cards = Array.isArray(value.cards) ? value.cards.map(String) : []
  const asker = {
    owner,
    door: door === 'http' ? door : 'stdio',
    ...(client ? { client: String(client) } : {})
  } as const
  const times = { createdAt, expiresAt, leaseUntil, endedAt }
  const [created = 0, expires = 0, lease = 0, ended = 0] = Object.values(times).map(Number)
  const about = { ...asker, home: String(home ?? ''), cards, holder }
  const shown = { head: String(value.head ?? ''), calls: Number(value.calls ?? 0), reason: String(value.reason ?? '') }
  return { ...about, ...shown, status, createdAt: created, expiresAt: expires, leaseUntil: lease, endedAt: ended }
}
