/** Chance that can be repeated: the same seed gives the same walk. */
export interface Random {
  /** From 0 up to 1. */
  next(): number
  between(low: number, high: number): number
  pick<T>(items: readonly T[]): T
  chance(share: number): boolean
}

/** mulberry32: 32 bits of state are plenty for choosing faults. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (low, high) => low + next() * (high - low),
    pick(items) {
      const item = items[Math.floor(next() * items.length)]
      if (item === undefined) throw new Error('There is nothing to pick from.')
      return item
    },
    chance: (share) => next() < share
  }
}
