/**
 * Fits the weights in `server/tools/routing/confidence.ts`: node bench/fit-confidence.ts [folder of the data]
 * Takes the tuning half (by hash of the request) of several sets, with and without distractors and past requests;
 * every set weighs the same, however large. Requests that no tool serves teach it what unsure looks like.
 */
import { createCatalogue, toolKey } from '../server/tools/routing/catalogue.ts'
import { confidenceOf } from '../server/tools/routing/confidence.ts'
import { EVIDENCE_NAMES } from '../server/tools/routing/evidence.ts'
import { createUsageMemory } from '../server/tools/routing/usage-memory.ts'
import { byServer, halfOf, readRoutingSet, routingDataFolder, type SetOptions } from './routing-data.ts'

interface Sample {
  evidence: number[]
  right: number
  weight: number
}

const MIX: { name: string; options: SetOptions; weight: number }[] = [
  { name: 'metatool', options: {}, weight: 1 },
  { name: 'metatool', options: { distractors: true }, weight: 0.3 },
  { name: 'metatool', options: { examplesPerTool: 1 }, weight: 0.3 },
  { name: 'metatool', options: { examplesPerTool: 5 }, weight: 0.5 },
  { name: 'metatool', options: { examplesPerTool: 1000 }, weight: 1 },
  { name: 'metatool', options: { examplesPerTool: 1000, distractors: true }, weight: 0.3 },
  { name: 'stabletoolbench', options: {}, weight: 1 },
  { name: 'stabletoolbench', options: { distractors: true }, weight: 0.5 },
  { name: 'mcpproxy_golden', options: {}, weight: 0.5 },
  { name: 'bfcl_live', options: {}, weight: 0.7 },
  { name: 'bfcl_live', options: { distractors: true }, weight: 0.3 },
  { name: 'bfcl_live', options: { irrelevant: true }, weight: 0.15 }
]
const MAX_SAMPLES = 600
const RIDGE = 0.0005
const ROUNDS = 15

async function samplesOf(folder: string, { name, options, weight }: (typeof MIX)[number]): Promise<Sample[]> {
  const set = await readRoutingSet(folder, name, options)
  const usage = createUsageMemory(20_000)
  for (const example of set.usage) usage.learn(example, toolKey(example.server, example.tool))
  const catalogue = createCatalogue(usage)
  for (const [server, tools] of byServer(set.tools)) catalogue.setServer(server, tools)
  const asked = set.requests.filter(({ query }) => halfOf(query) === 0)
  const step = Math.max(1, Math.ceil(asked.length / MAX_SAMPLES))
  const chosen = asked.filter((_, at) => at % step === 0)
  return chosen.flatMap(({ query, gold }) => {
    const { ranked, evidence } = catalogue.judge(query)
    const tool = ranked[0] && catalogue.tool(ranked[0].slot)
    if (!tool || ranked[0]?.exact) return []
    return [{ evidence, right: gold.includes(`${tool.server}::${tool.name}`) ? 1 : 0, weight: weight / chosen.length }]
  })
}

/** Gaussian elimination; the ridge keeps the matrix far from singular. */
function solve(matrix: number[][], right: number[]): number[] {
  const rows = matrix.map((row, at) => [...row, right[at] ?? 0])
  for (let at = 0; at < rows.length; at += 1) {
    const pivot = rows[at]!
    for (const row of rows) {
      if (row === pivot) continue
      const factor = (row[at] ?? 0) / (pivot[at] ?? 1)
      for (let column = at; column < row.length; column += 1) row[column]! -= factor * (pivot[column] ?? 0)
    }
  }
  return rows.map((row, at) => (row.at(-1) ?? 0) / (row[at] ?? 1))
}

/** Newton's method. */
function fitWeights(samples: Sample[]): number[] {
  let weights: number[] = EVIDENCE_NAMES.map(() => 0)
  const total = samples.reduce((sum, { weight }) => sum + weight, 0)
  for (let round = 0; round < ROUNDS; round += 1) {
    const slope = weights.map((value) => RIDGE * value)
    const curve = weights.map((_, at) => weights.map((__, other) => (at === other ? RIDGE : 0)))
    for (const { evidence, right, weight } of samples) {
      const sure = confidenceOf(evidence, weights)
      const share = weight / total
      evidence.forEach((value, at) => {
        slope[at]! += (sure - right) * share * value
        for (let other = 0; other < evidence.length; other += 1) {
          curve[at]![other]! += sure * (1 - sure) * share * value * (evidence[other] ?? 0)
        }
      })
    }
    const step = solve(curve, slope)
    weights = weights.map((value, at) => value - (step[at] ?? 0))
  }
  return weights
}

const folder = routingDataFolder(process.argv[2])
if (folder === undefined) {
  console.error('The routing data is not here; give its folder as the first argument.')
  process.exit(2)
}
const samples = (await Promise.all(MIX.map((part) => samplesOf(folder, part)))).flat()
const weights = fitWeights(samples)
console.error(`${samples.length} samples`)
for (const [at, name] of EVIDENCE_NAMES.entries()) console.log(`  ${(weights[at] ?? 0).toFixed(3)}, // ${name}`)
