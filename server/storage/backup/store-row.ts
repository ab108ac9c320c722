/** The content of a session store in a form that no adapter owns: it can be read from one kind of store and written to another. */
import { createHash } from 'node:crypto'

export type StoreRow =
  | { kind: 'session'; id: string; epoch: number; createdAt: number; activeAt: number }
  | { kind: 'event'; id: string; seq: number; at: number; body: string }
  | { kind: 'event-key'; id: string; key: string }
  | { kind: 'large'; id: string; hash: string; value: string }
  | { kind: 'log-size'; id: string; bytes: number }
  | { kind: 'fact'; space: string; key: string; value: string }
  /** New epochs are higher than this one. */
  | { kind: 'floor'; epoch: number }

/** These belong to running instances, or to a bucket. */
const SKIPPED_SPACES = new Set([
  'object-collector',
  'audit-pruner',
  'login-locks',
  'migration',
  'store-format',
  'content-bytes'
])
const MODULUS = 2n ** 256n

export function isCopied(row: StoreRow): boolean {
  return row.kind !== 'fact' || !SKIPPED_SPACES.has(row.space)
}

/** A hash of all rows that does not depend on their order. */
export class RowDigest {
  readonly #sums = new Map<string, { rows: number; sum: bigint }>()

  add(row: StoreRow): void {
    const hash = createHash('sha256').update(JSON.stringify(Object.entries(row).toSorted()))
    const { rows, sum } = this.#sums.get(row.kind) ?? { rows: 0, sum: 0n }
    this.#sums.set(row.kind, { rows: rows + 1, sum: (sum + BigInt(`0x${hash.digest('hex')}`)) % MODULUS })
  }

  count(kind: StoreRow['kind']): number {
    return this.#sums.get(kind)?.rows ?? 0
  }

  get isEmpty(): boolean {
    return this.#sums.size === 0
  }

  /** Equal digests mean equal rows. */
  get text(): string {
    const sums = [...this.#sums].toSorted(([a], [b]) => a.localeCompare(b))
    return sums.map(([kind, { rows, sum }]) => `${kind} ${rows} ${sum.toString(16)}`).join('\n')
  }

  /** The kinds of rows that differ. */
  differences(other: RowDigest): string[] {
    const kinds = new Set([...this.#sums.keys(), ...other.#sums.keys()])
    return [...kinds].filter((kind) => {
      const [mine, theirs] = [this.#sums.get(kind), other.#sums.get(kind)]
      return mine?.rows !== theirs?.rows || mine?.sum !== theirs?.sum
    })
  }
}
