/** Finds runs of zeros, so that moving, storing and restoring a sparse file costs only what it really contains. */

const BLOCK_BYTES = 4096
const ZERO_BLOCK = Buffer.alloc(BLOCK_BYTES)

export interface ContentRun {
  at: number
  length: number
  isZero: boolean
}

/**
 * Splits the content into runs, in order and without gaps. A run of zeros consists of whole blocks, except at the end of the
 * content, where it may include the rest of a block.
 */
export function zeroRuns(bytes: Uint8Array): ContentRun[] {
  const runs: ContentRun[] = []
  let last: ContentRun | undefined
  for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
    const block = bytes.subarray(at, at + BLOCK_BYTES)
    const isWhole = block.length === BLOCK_BYTES || last?.isZero === true
    const isZero = isWhole && block[0] === 0 && ZERO_BLOCK.compare(block, 0, block.length, 0, block.length) === 0
    if (last?.isZero === isZero) {
      last.length += block.length
    } else {
      last = { at, length: block.length, isZero }
      runs.push(last)
    }
  }
  return runs
}

/** The bytes outside runs of zeros, in order. Copies only if there are such runs. */
export function withoutZeros(bytes: Uint8Array, runs: readonly ContentRun[]): Uint8Array {
  if (!runs.some(({ isZero }) => isZero)) return bytes
  return Buffer.concat(runs.filter(({ isZero }) => !isZero).map(({ at, length }) => bytes.subarray(at, at + length)))
}
