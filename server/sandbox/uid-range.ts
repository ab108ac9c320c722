/** The user ids that an engine's sandboxes share. Each container has its own, because the kernel counts per user. */
export interface UidRange {
  first: number
  last: number
}

/**
 * Below 65,536, the number of ids that engines without root or with remapped users have, and above the ids of people and
 * services. Not more than needed: each is a line of /etc/passwd, which the engine reads at every start and exec (about 5 ms for a
 * thousand).
 */
export const DEFAULT_UIDS: UidRange = { first: 20_000, last: 20_999 }

export function uidCount({ first, last }: UidRange): number {
  return last - first + 1
}

export function isInRange(uid: number, { first, last }: UidRange): boolean {
  return Number.isSafeInteger(uid) && uid >= first && uid <= last
}
