/**
 * A linear model over the words of past requests. It starts from each tool's mean request, and is then corrected on
 * every example that another tool would win, or nearly (passive-aggressive updates).
 */
import { type Feature, normOf, rarity, type UsageStore, type UsedTool } from './usage-store.ts'

const ROUNDS = 5
const MARGIN = 0.3
const MAX_STEP = 0.05
/** Sums in another order differ in their last digits. */
const EQUAL = 1e-9

/** What speaks for each tool; their scratch sums are taken and left at 0. */
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
    // One whose sum was 0 in between is listed twice.
    if (pulls.has(tool)) continue
    pulls.set(tool, tool.sum / MARGIN)
    tool.sum = 0
  }
  return pulls
}

/** The store as flat arrays: training goes over all of it several times. */
interface Flat {
  /** Where the pairs of each feature begin, and behind the last one, where they end. */
  starts: Uint32Array
  pairTools: Uint16Array
  pulls: Float64Array
  examples: { tool: number; features: Uint32Array; values: Float64Array }[]
  tools: number
}

function flatten(store: UsageStore, features: readonly Feature[]): Flat {
  // By name, not by arrival: of equal rivals the first is corrected.
  const tools = [...new Set(features.flatMap((feature) => feature.tools))].sort((a, b) => (a.key < b.key ? -1 : 1))
  const toolIds = new Map(tools.map((tool, id) => [tool, id]))
  const idOf = (tool: UsedTool): number => toolIds.get(tool) ?? 0
  const featureIds = new Map(features.map((feature, id) => [feature, id]))
  const starts = new Uint32Array(features.length + 1)
  features.forEach((feature, id) => {
    starts[id + 1] = (starts[id] ?? 0) + feature.tools.length
  })
  const pairTools = Uint16Array.from(features.flatMap((feature) => feature.tools.map(idOf)))
  const examples = mixedOrder(store.size).flatMap((at) => {
    const entry = store.entry(store.firstId + at)
    if (!entry) return []
    const values = Float64Array.from(entry.features, (feature) => rarity(store, feature))
    const norm = normOf(store, entry)
    const own = Uint32Array.from(entry.features, (feature) => featureIds.get(feature) ?? 0)
    return [{ tool: idOf(entry.tool), features: own, values: values.map((value) => value / norm) }]
  })
  return { starts, pairTools, pulls: new Float64Array(pairTools.length), examples, tools: tools.length }
}

/** Words that a tool was never asked with say nothing of it, whatever happens: that keeps the model small. */
function shift({ starts, pairTools, pulls }: Flat, example: Flat['examples'][number], tool: number, by: number): void {
  for (let at = 0; at < example.features.length; at += 1) {
    const feature = example.features[at] ?? 0
    const end = starts[feature + 1] ?? 0
    for (let pair = starts[feature] ?? 0; pair < end; pair += 1) {
      if (pairTools[pair] !== tool) continue
      pulls[pair] = (pulls[pair] ?? 0) + by * (example.values[at] ?? 0)
      break
    }
  }
}

function startFromMeans(flat: Flat): void {
  for (const example of flat.examples) shift(flat, example, example.tool, 1)
  const squares = new Float64Array(flat.tools)
  flat.pairTools.forEach((tool, pair) => {
    squares[tool] = (squares[tool] ?? 0) + (flat.pulls[pair] ?? 0) ** 2
  })
  flat.pairTools.forEach((tool, pair) => {
    flat.pulls[pair] = (flat.pulls[pair] ?? 0) / Math.sqrt(squares[tool] ?? 1)
  })
}

function correct(flat: Flat, example: Flat['examples'][number], sums: Float64Array): void {
  const { starts, pairTools, pulls } = flat
  sums.fill(0)
  for (let at = 0; at < example.features.length; at += 1) {
    const feature = example.features[at] ?? 0
    const value = example.values[at] ?? 0
    const end = starts[feature + 1] ?? 0
    for (let pair = starts[feature] ?? 0; pair < end; pair += 1) {
      const tool = pairTools[pair] ?? 0
      sums[tool] = (sums[tool] ?? 0) + value * (pulls[pair] ?? 0)
    }
  }
  let rival = example.tool === 0 ? 1 : 0
  for (let tool = 0; tool < sums.length; tool += 1) {
    if (tool !== example.tool && (sums[tool] ?? 0) > (sums[rival] ?? 0) + EQUAL) rival = tool
  }
  const lacking = MARGIN - (sums[example.tool] ?? 0) + (sums[rival] ?? 0)
  if (lacking <= 0) return
  const step = Math.min(MAX_STEP, lacking / 2)
  shift(flat, example, example.tool, step)
  shift(flat, example, rival, -step)
}

/** Positions in an order that is the same every time and unlike that of arrival. */
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

export function trainPulls(store: UsageStore): void {
  const features = [...store.features.values()]
  const flat = flatten(store, features)
  startFromMeans(flat)
  const sums = new Float64Array(flat.tools)
  for (let round = 0; round < ROUNDS; round += 1) for (const example of flat.examples) correct(flat, example, sums)
  features.forEach((feature, id) => {
    feature.pulls = Array.from(flat.pulls.subarray(flat.starts[id], flat.starts[id + 1]))
  })
}
