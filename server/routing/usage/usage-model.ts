/**
 * A linear model over the words of past requests. It starts from each tool's mean request and is then corrected on every example
 * that another tool would win, or nearly win (passive-aggressive updates). Training can pause after every step: examples may come
 * and go meanwhile, and the previous weights are used until it is done.
 */
import { type Feature, normOf, rarity, type Stored, type UsageStore, type UsedTool } from './usage-store.ts'

const ROUNDS = 5
const MARGIN = 0.3
const MAX_STEP = 0.05
/** Sums in another order differ in their last digits. */
const EQUAL = 1e-9

/** The score of each tool. Uses the tools' scratch sums and resets them to 0. */
export function pullsOn(store: UsageStore, known: readonly Feature[], norm: number): Map<UsedTool, number> {
  const touched: UsedTool[] = []
  for (const feature of known) {
    const value = rarity(store, feature) / norm
    for (let at = 0; at < feature.tools.length; at += 1) {
      const tool = feature.tools[at]
      if (!tool) continue
      if (tool.sum === 0) touched.push(tool)
      tool.sum += value * (feature.pulls[at] ?? 0)
    }
  }
  const pulls = new Map<UsedTool, number>()
  for (const tool of touched) {
    // A tool whose sum was 0 in between is listed twice.
    if (pulls.has(tool)) continue
    pulls.set(tool, tool.sum / MARGIN)
    tool.sum = 0
  }
  return pulls
}

/** The store as flat arrays, because training reads all of it several times. */
interface Flat {
  tools: UsedTool[]
  /** The start of each feature's pairs; one more element for the end of the last. */
  starts: Uint32Array
  pairTools: Uint16Array
  pulls: Float64Array
  examples: { tool: number; features: Uint32Array; values: Float64Array }[]
}

/** Yields the amount of work done since the last yield. */
type Walk<T> = Generator<number, T>

function* flatten(store: UsageStore, features: readonly Feature[], entries: readonly Stored[]): Walk<Flat> {
  const found = new Set<UsedTool>()
  const own: UsedTool[][] = []
  const starts = new Uint32Array(features.length + 1)
  const featureIds = new Map<Feature, number>()
  for (const [id, feature] of features.entries()) {
    own.push([...feature.tools])
    for (const tool of feature.tools) found.add(tool)
    featureIds.set(feature, id)
    starts[id + 1] = (starts[id] ?? 0) + feature.tools.length
    yield feature.tools.length
  }
  // Sorted by name, not by arrival: of equal rivals the first is corrected.
  const tools = [...found].sort((a, b) => (a.key < b.key ? -1 : 1))
  const toolIds = new Map(tools.map((tool, id) => [tool, id]))
  const idOf = (tool: UsedTool): number => toolIds.get(tool) ?? 0
  const pairTools = new Uint16Array(starts[features.length] ?? 0)
  for (const [id, list] of own.entries()) {
    pairTools.set(list.map(idOf), starts[id])
    yield list.length
  }
  const examples: Flat['examples'] = []
  for (const at of mixedOrder(entries.length)) {
    const entry = entries[at]
    const tool = entry && toolIds.get(entry.tool)
    // An example that was removed meanwhile has taken its words with it.
    if (tool === undefined || !entry?.features.every((feature) => feature.examples.length > 0)) continue
    const norm = normOf(store, entry)
    const values = Float64Array.from(entry.features, (feature) => rarity(store, feature) / norm)
    const ids = Uint32Array.from(entry.features, (feature) => featureIds.get(feature) ?? 0)
    examples.push({ tool, features: ids, values })
    yield entry.features.length
  }
  return { starts, pairTools, pulls: new Float64Array(pairTools.length), examples, tools }
}

/** Words that a tool was never requested with stay at 0 for it, which keeps the model small. */
function shift(flat: Flat, example: Flat['examples'][number], tool: number, by: number): number {
  const { starts, pairTools, pulls } = flat
  let looked = 0
  for (let at = 0; at < example.features.length; at += 1) {
    const feature = example.features[at] ?? 0
    const end = starts[feature + 1] ?? 0
    for (let pair = starts[feature] ?? 0; pair < end; pair += 1) {
      looked += 1
      if (pairTools[pair] !== tool) continue
      pulls[pair] = (pulls[pair] ?? 0) + by * (example.values[at] ?? 0)
      break
    }
  }
  return looked
}

function* startFromMeans(flat: Flat): Walk<void> {
  const { pairTools, pulls } = flat
  for (const example of flat.examples) yield shift(flat, example, example.tool, 1)
  const squares = new Float64Array(flat.tools.length)
  for (let pair = 0; pair < pairTools.length; pair += 1) {
    const tool = pairTools[pair] ?? 0
    squares[tool] = (squares[tool] ?? 0) + (pulls[pair] ?? 0) ** 2
    yield 1
  }
  for (let pair = 0; pair < pairTools.length; pair += 1) {
    pulls[pair] = (pulls[pair] ?? 0) / Math.sqrt(squares[pairTools[pair] ?? 0] || 1)
    yield 1
  }
}

/** Returns the number of operations. */
function correct(flat: Flat, example: Flat['examples'][number], sums: Float64Array): number {
  const { starts, pairTools, pulls } = flat
  let looked = 2 * sums.length
  sums.fill(0)
  for (let at = 0; at < example.features.length; at += 1) {
    const feature = example.features[at] ?? 0
    const value = example.values[at] ?? 0
    const end = starts[feature + 1] ?? 0
    for (let pair = starts[feature] ?? 0; pair < end; pair += 1) {
      const tool = pairTools[pair] ?? 0
      sums[tool] = (sums[tool] ?? 0) + value * (pulls[pair] ?? 0)
      looked += 1
    }
  }
  let rival = example.tool === 0 ? 1 : 0
  for (let tool = 0; tool < sums.length; tool += 1) {
    if (tool !== example.tool && (sums[tool] ?? 0) > (sums[rival] ?? 0) + EQUAL) rival = tool
  }
  const lacking = MARGIN - (sums[example.tool] ?? 0) + (sums[rival] ?? 0)
  if (lacking <= 0) return looked
  const step = Math.min(MAX_STEP, lacking / 2)
  return looked + shift(flat, example, example.tool, step) + shift(flat, example, rival, -step)
}

/** Positions in a shuffled order that is always the same. */
function mixedOrder(size: number): number[] {
  const order = Array.from({ length: size }, (_, at) => at)
  let state = 1
  for (let at = size - 1; at > 0; at -= 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    const other = state % (at + 1)
    const kept = order[at] ?? 0
    order[at] = order[other] ?? 0
    order[other] = kept
  }
  return order
}

export function* training(store: UsageStore): Walk<void> {
  const features = [...store.features.values()]
  const entries = Array.from({ length: store.size }, (_, at) => store.entry(store.firstId + at)).filter(
    (entry) => entry !== undefined
  )
  const flat = yield* flatten(store, features, entries)
  yield* startFromMeans(flat)
  const sums = new Float64Array(flat.tools.length)
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const example of flat.examples) yield correct(flat, example, sums)
  }
  for (const [id, feature] of features.entries()) yield takeOver(flat, id, feature)
}

/** The tools may have changed meanwhile. */
function takeOver({ starts, pairTools, pulls, tools }: Flat, id: number, feature: Feature): number {
  const [from = 0, to = 0] = starts.subarray(id, id + 2)
  const trained = new Map<UsedTool | undefined, number>()
  for (let pair = from; pair < to; pair += 1) trained.set(tools[pairTools[pair] ?? 0], pulls[pair] ?? 0)
  feature.pulls = feature.tools.map((tool) => trained.get(tool) ?? 0)
  return feature.tools.length + to - from
}

/** Runs a walk in slices of about this many operations; `next` schedules the next slice. */
export function inSlices(
  walk: Walk<void>,
  operations: number,
  next: (slice: () => void) => void,
  done: () => void
): void {
  const slice = () => {
    for (let spent = 0; spent < operations; ) {
      const step = walk.next()
      if (step.done) return done()
      spent += step.value + 1
    }
    next(slice)
  }
  next(slice)
}
