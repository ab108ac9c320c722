/**
 * Fits the weights in `server/routing/confidence.ts`: node bench/fit-confidence.ts [folder of the data]
 * Uses the tuning half (by hash of the request) of several sets, with and without distractors and past requests. All sets have the same
 * weight. Requests that no tool can serve are examples of low confidence. Reports the results on the other halves, and on each set when
 * the fit did not use it.
 */

import { confidenceOf, WEIGHTS } from '../server/routing/confidence.ts'
import { DEFAULT_THRESHOLD } from '../server/routing/router.ts'
import { createToolCorpus, toolKey } from '../server/routing/tool-corpus.ts'
import { AT_ONCE, createUsageMemory } from '../server/routing/usage/usage-memory.ts'
import { calibrationError, chanceError } from './calibration.ts'
import { byServer, halfOf, readRoutingSet, routingDataFolder, type SetOptions } from './routing-data.ts'

interface Sample {
  set: string
  label: string
  half: 0 | 1
  evidence: number[]
  right: number
  weight: number
}

const MIX: { name: string; options: SetOptions; weight: number }[] = [
  { name: 'metatool', options: {}, weight: 1 },
  { name: 'metatool', options: { distractors: true }, weight: 1 },
  { name: 'metatool', options: { examplesPerTool: 1 }, weight: 0.3 },
  { name: 'metatool', options: { examplesPerTool: 5 }, weight: 0.5 },
  { name: 'metatool', options: { examplesPerTool: 1000 }, weight: 1 },
  { name: 'metatool', options: { examplesPerTool: 1000, distractors: true }, weight: 0.5 },
  { name: 'stabletoolbench', options: {}, weight: 2 },
  { name: 'stabletoolbench', options: { distractors: true }, weight: 1 },
  { name: 'mcpproxy_golden', options: {}, weight: 0.5 },
  { name: 'mcpproxy_golden', options: { distractors: true }, weight: 0.4 },
  { name: 'bfcl_live', options: {}, weight: 0.7 },
  { name: 'bfcl_live', options: { distractors: true }, weight: 0.5 },
  { name: 'bfcl_live', options: { irrelevant: true }, weight: 0.3 },
  { name: 'bfcl_live', options: { irrelevant: true, distractors: true }, weight: 0 }
]
const EVIDENCE = Object.keys(WEIGHTS)
const MAX_SAMPLES = 1200
const RIDGE = 0.0005
const ROUNDS = 15

function labelOf(name: string, { distractors, examplesPerTool, irrelevant }: SetOptions): string {
  const parts = [name, distractors ? 'haystack' : '', examplesPerTool ? `${examplesPerTool} uses` : '']
  return [...parts, irrelevant ? 'irrelevant' : ''].filter(Boolean).join(' + ')
}

async function samplesOf(folder: string, { name, options, weight }: (typeof MIX)[number]): Promise<Sample[]> {
  const set = await readRoutingSet(folder, name, options)
  const usage = createUsageMemory(20_000, AT_ONCE)
  for (const example of set.usage) usage.learn(example, toolKey(example.server, example.tool))
  const corpus = createToolCorpus(usage)
  for (const [server, tools] of byServer(set.tools)) corpus.setServer(server, tools)
  const step = Math.max(1, Math.ceil(set.requests.length / MAX_SAMPLES))
  const chosen = set.requests.filter((_, at) => at % step === 0)
  return chosen.flatMap(({ query, gold }) => {
    const { ranked, evidence } = corpus.judge(query)
    const tool = ranked[0] && corpus.tool(ranked[0].slot)
    if (!tool || ranked[0]?.exact) return []
    const right = gold.includes(`${tool.server}::${tool.name}`) ? 1 : 0
    const label = labelOf(name, options)
    return [{ set: name, label, half: halfOf(query), evidence, right, weight: weight / chosen.length }]
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
  let weights: number[] = EVIDENCE.map(() => 0)
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
/** For each mix of samples: calibration error, share above the default threshold, and share of right first answers. */
function report(title: string, samples: Sample[], weights: number[]): void {
  for (const [label, group] of Map.groupBy(samples, (sample) => sample.label)) {
    const answers = group.map(({ evidence, right }) => ({
      confidence: confidenceOf(evidence, weights),
      first: right === 1
    }))
    const answered = answers.filter(({ confidence }) => confidence >= DEFAULT_THRESHOLD).length / answers.length
    const right = answers.filter(({ first }) => first).length / answers.length
    const figures = [calibrationError(answers), chanceError(answers), answered, right].map((value) => value.toFixed(3))
    console.error(`${title} ${label.padEnd(36)} error, by chance, answered, right: ${figures.join('  ')}`)
  }
}

const samples = (await Promise.all(MIX.map((part) => samplesOf(folder, part)))).flat()
const weights = fitWeights(samples.filter(({ half }) => half === 0))
console.error(`${samples.length} samples`)
report(
  'held-out half',
  samples.filter(({ half }) => half === 1),
  weights
)
// The harder case: a data set that the fit has not seen at all.
for (const set of new Set(samples.map((sample) => sample.set))) {
  const others = fitWeights(samples.filter((sample) => sample.set !== set))
  report(
    'unseen set   ',
    samples.filter((sample) => sample.set === set),
    others
  )
}
for (const [at, name] of EVIDENCE.entries()) console.log(`  ${name}: ${(weights[at] ?? 0).toFixed(3)},`)
