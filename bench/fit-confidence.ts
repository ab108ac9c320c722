/**
 * Fits the weights in `server/routing/confidence.ts`: node bench/fit-confidence.ts [folder of the data]
 * Four models: the first answer is right, and any tool serves the request; each with and without embeddings. Uses the tuning half (by
 * hash of the request) of several sets, with and without distractors and past requests. Requests that no tool can serve are examples of
 * low confidence. Reports the results on the other halves.
 */

import { EVIDENCE } from '../server/routing/evidence.ts'
import { createToolCorpus, toolKey } from '../server/routing/tool-corpus.ts'
import { AT_ONCE, createUsageMemory } from '../server/routing/usage/usage-memory.ts'
import { isSmallTalk } from '../server/routing/words/small-talk.ts'
import { calibrationError, chanceError } from './calibration.ts'
import { fitLogistic, probability } from './logistic.ts'
import { byServer, halfOf, readRoutingSet, routingDataFolder, type SetOptions } from './routing-data.ts'
import { openVectors, type SimilaritiesOf } from './routing-vectors.ts'

interface Judged {
  label: string
  half: 0 | 1
  evidence: number[]
  right: number
  served: number
  weight: number
}

const MIX: { name: string; options: SetOptions; weight: number }[] = [
  { name: 'metatool', options: {}, weight: 1 },
  { name: 'metatool', options: { distractors: true }, weight: 1 },
  { name: 'metatool', options: { examplesPerTool: 1 }, weight: 0.3 },
  { name: 'metatool', options: { examplesPerTool: 5 }, weight: 0.5 },
  { name: 'metatool', options: { examplesPerTool: 1000 }, weight: 1 },
  { name: 'metatool', options: { examplesPerTool: 1000, distractors: true }, weight: 0.5 },
  { name: 'stabletoolbench', options: {}, weight: 2.5 },
  { name: 'stabletoolbench', options: { distractors: true }, weight: 1.5 },
  { name: 'mcpproxy_golden', options: {}, weight: 0.5 },
  { name: 'mcpproxy_golden', options: { distractors: true }, weight: 0.4 },
  { name: 'bfcl_live', options: {}, weight: 1 },
  { name: 'bfcl_live', options: { distractors: true }, weight: 0.8 },
  { name: 'bfcl_live', options: { irrelevant: true }, weight: 0.3 },
  { name: 'mcpproxy_golden', options: { foreign: 'metatool' }, weight: 0.3 },
  { name: 'metatool', options: { foreign: 'mcpproxy_golden' }, weight: 0.1 },
  { name: 'stabletoolbench', options: { foreign: 'mcpproxy_golden' }, weight: 0.1 }
]
/** Features that tell whether any tool serves the request. The others would tell which data set a request is from. */
const OF_SERVED = new Set([
  ...['bias', 'margin', 'strength', 'coverage', 'nameCoverage', 'known', 'usageShare', 'usageMargin', 'nearestRequest'],
  ...['meaning', 'meaningLead', 'level', 'bestLevel', 'lead', 'leadOfFifth'],
  ...['missed', 'rareMissed', 'toolWords', 'missedWords']
])
/** These say nothing about which of the tools is right. */
const OF_SERVED_ONLY = new Set(['missed', 'rareMissed', 'toolWords', 'missedWords'])
const UNSERVED_SHARE = 0.4
const MAX_SAMPLES = 1200
const MAX_REFUSED = 0.07
/** A share of fewer requests says nothing. */
const MIN_SET = 50

function labelOf(name: string, { distractors, examplesPerTool, irrelevant, foreign }: SetOptions): string {
  const parts = [name, distractors ? 'haystack' : '', examplesPerTool ? `${examplesPerTool} uses` : '']
  return [...parts, irrelevant ? 'irrelevant' : '', foreign ? `asked ${foreign}` : ''].filter(Boolean).join(' + ')
}

type Set = Awaited<ReturnType<typeof readRoutingSet>>

function judgeAll(set: Set, part: (typeof MIX)[number], similaritiesOf: SimilaritiesOf | undefined): Judged[] {
  const usage = createUsageMemory(20_000, AT_ONCE)
  for (const example of set.usage) usage.learn(example, toolKey(example.server, example.tool))
  const corpus = createToolCorpus(usage)
  for (const [server, tools] of byServer(set.tools)) corpus.setServer(server, tools)
  const step = Math.max(1, Math.ceil(set.requests.length / MAX_SAMPLES))
  const chosen = set.requests.filter((_, at) => at % step === 0)
  return chosen.flatMap(({ query, gold }) => {
    const similarities = similaritiesOf?.(query)
    // The models are not asked about these.
    if (isSmallTalk(query) || (similaritiesOf && !similarities)) return []
    const { ranked, evidence } = corpus.judge(query, { similarities })
    const tool = ranked[0] && corpus.tool(ranked[0].slot)
    if (!tool || ranked[0]?.exact) return []
    const right = gold.includes(`${tool.server}::${tool.name}`) ? 1 : 0
    const label = labelOf(part.name, part.options)
    const served = gold.length > 0 ? 1 : 0
    return [{ label, half: halfOf(query), evidence, right, served, weight: part.weight / chosen.length }]
  })
}

function fitServed(judged: Judged[]): number[] {
  const sum = (is: number) => judged.reduce((total, each) => total + (each.served === is ? each.weight : 0), 0)
  const scale = [UNSERVED_SHARE / sum(0), (1 - UNSERVED_SHARE) / sum(1)]
  return fitLogistic(
    judged.map(({ evidence, served, weight }) => ({
      values: evidence.map((value, at) => (OF_SERVED.has(EVIDENCE[at] ?? '') ? value : 0)),
      target: served,
      weight: weight * (scale[served] ?? 0)
    }))
  )
}

/** In no set without distractors, more than this share of the served requests is refused. */
function limitFor(judged: Judged[], weights: number[]): number {
  const limits = [...Map.groupBy(judged, ({ label }) => label).values()].flatMap((group) => {
    const sure = group.filter(({ served }) => served === 1).map(({ evidence }) => probability(evidence, weights))
    return sure.length < MIN_SET ? [] : [sure.sort((a, b) => a - b)[Math.floor(sure.length * MAX_REFUSED)] ?? 0]
  })
  return Math.min(...limits)
}

function report(judged: Judged[], confidence: number[], served: number[], limit: number): void {
  for (const [label, group] of Map.groupBy(judged, (each) => each.label)) {
    const answers = group.map(({ evidence, right }) => {
      return { confidence: probability(evidence, confidence), first: right === 1 }
    })
    const refused = group.filter(({ evidence }) => probability(evidence, served) < limit).length / group.length
    const right = answers.filter(({ first }) => first).length / answers.length
    const figures = [calibrationError(answers), chanceError(answers), right, refused].map((value) => value.toFixed(3))
    console.error(`  ${label.padEnd(40)} error, by chance, right, refused: ${figures.join('  ')}`)
  }
}

function fitModels(title: string, judged: Judged[]): void {
  const tuning = judged.filter(({ half }) => half === 0)
  const fitted = (targetOf: (each: Judged) => number, of: Judged[]) =>
    fitLogistic(
      of.map((each) => ({
        values: each.evidence.map((value, at) => (OF_SERVED_ONLY.has(EVIDENCE[at] ?? '') ? 0 : value)),
        target: targetOf(each),
        weight: each.weight
      }))
    )
  // Requests of another set would say how sure to be in that set.
  const own = tuning.filter(({ label }) => !label.includes('asked'))
  const confidence = fitted(({ right }) => right, own)
  // With distractors, some requests that nothing served before have a tool.
  const served = fitServed(tuning.filter(({ label }) => !label.includes('haystack')))
  const limit = limitFor(
    tuning.filter(({ label }) => !label.includes('haystack')),
    served
  )
  console.error(`${title}, test halves:`)
  report(
    judged.filter(({ half }) => half === 1),
    confidence,
    served,
    limit
  )
  const list = (weights: number[]) => weights.map((weight, at) => `  ${EVIDENCE[at]}: ${weight.toFixed(3)}`).join(',\n')
  console.log(`${title}: {\n${list(confidence)}\n}\nserved ${title}: {\n${list(served)}\n}\nlimit: ${limit.toFixed(3)}`)
}

const folder = routingDataFolder(process.argv[2])
if (folder === undefined) {
  console.error('The routing data is not here; give its folder as the first argument.')
  process.exit(2)
}
const vectors = await openVectors()
const byWords: Judged[] = []
const byMeaning: Judged[] = []
for (const part of MIX) {
  const set = await readRoutingSet(folder, part.name, part.options)
  byWords.push(...judgeAll(set, part, undefined))
  if (vectors) byMeaning.push(...judgeAll(set, part, await vectors.similaritiesFor(set)))
}
fitModels('words', byWords)
if (vectors) fitModels('meaning', byMeaning)
process.exit(0)
