import type { CheckpointState, Location } from './checkpoint-state.ts'
import type { CopiedPacks, PackRange, PackSet } from './pack-set.ts'

const MIN_MANIFEST_BYTES = 64 * 1024
const MIN_PACK_BYTES = 1024 * 1024
const MAX_PACKS = 16
const COPY_BYTES = 1024 * 1024

export function manifestIsBloated(manifestBytes: number, state: CheckpointState): boolean {
  return manifestBytes > Math.max(MIN_MANIFEST_BYTES, 2 * state.manifestBytes)
}

/**
 * The packs that are worth rewriting: those of which at least half is dead, so that we never copy more than we free, and the
 * smallest ones when there are many, because every owner starts a new one.
 */
export function packsToRewrite(packs: PackSet, state: CheckpointState): Set<string> {
  const sizes = packs.sizes()
  const crowded = sizes.length > MAX_PACKS
  if (!crowded && packs.bytes <= Math.max(MIN_PACK_BYTES, 2 * state.liveBytes)) return new Set()
  const use = state.packUse()
  const chosen = new Set<string>()
  for (const [name, bytes] of sizes) if (2 * (use.get(name) ?? 0) <= bytes) chosen.add(name)
  if (crowded) {
    sizes.sort(([, a], [, b]) => a - b)
    for (const [name] of sizes.slice(0, MAX_PACKS / 2)) chosen.add(name)
  }
  return chosen
}

/** Copies the live content of these packs into a new one and returns its new locations. Not durable yet. */
export async function copyLive(
  packs: CopiedPacks,
  state: CheckpointState,
  from: ReadonlySet<string>
): Promise<Map<string, Location>> {
  packs.seal()
  const moved = new Map<string, Location>()
  for (const run of runs(state, from)) {
    const target = await copyRun(packs, run)
    for (const [hash, blob] of run.blobs) {
      moved.set(hash, { ...blob, pack: target.pack, offset: target.offset + blob.offset - run.offset })
    }
  }
  return moved
}

interface Run extends PackRange {
  blobs: [hash: string, location: Location][]
}

/** Merges adjacent content, so that ten thousand small files take a few reads. */
function* runs(state: CheckpointState, from: ReadonlySet<string>): Iterable<Run> {
  const live = [...state.blobs].filter(([, blob]) => from.has(blob.pack))
  live.sort(([, a], [, b]) => (a.pack === b.pack ? a.offset - b.offset : a.pack < b.pack ? -1 : 1))
  let run: Run | undefined
  for (const [hash, { pack, offset, length, stored }] of live) {
    const follows = run?.pack === pack && run.offset + run.bytes === offset && run.bytes + stored <= COPY_BYTES
    if (run && follows) {
      run.bytes += stored
    } else {
      if (run) yield run
      run = { pack, offset, bytes: stored, blobs: [] }
    }
    run.blobs.push([hash, { pack, offset, length, stored }])
  }
  if (run) yield run
}

async function copyRun(packs: CopiedPacks, { pack, offset, bytes }: Run): Promise<PackRange> {
  let first: PackRange | undefined
  for (let done = 0; ; ) {
    const chunk = Math.min(COPY_BYTES, bytes - done)
    const written = await packs.append(await packs.range({ pack, offset: offset + done, bytes: chunk }))
    first ??= written
    done += chunk
    if (done === bytes) return first
  }
}
