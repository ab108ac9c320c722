/** Measures how often the router's first answer (or one of its first five) is right, its calibration, and its speed. */
import type { Router } from '../server/routing/port.ts'
import { createRouter } from '../server/routing/router.ts'
import { AT_ONCE } from '../server/routing/usage/usage-memory.ts'
import { calibrationError, chanceError } from './calibration.ts'
import { byServer, halfOf, type RoutingSet, readRoutingSet } from './routing-data.ts'
import { type Row, rowsOf, SETS, tableOf } from './routing-table.ts'
import { openVectors, type SimilaritiesOf } from './routing-vectors.ts'
import { quantile, round } from './statistics.ts'

interface Answer {
  half: 0 | 1
  confidence: number
  abstained: boolean
  first: boolean
  withinFive: boolean
  /** Right, or a tool of the same name: distractors hold other editions of the same servers. */
  withinFiveOrNamesake: boolean
}

function routerFor(set: RoutingSet): Router {
  const router = createRouter({ schedule: AT_ONCE })
  for (const [server, tools] of byServer(set.tools)) router.setServer(server, tools)
  for (const example of set.usage) router.learn(example)
  return router
}

function ask(set: RoutingSet, similaritiesOf: SimilaritiesOf | undefined): Answer[] {
  const router = routerFor(set)
  return set.requests.map(({ query, gold }) => {
    const { matches, abstained } = router.find(query, { limit: 5, similarities: similaritiesOf?.(query) })
    const right = matches.map(({ server, tool }) => gold.includes(`${server}::${tool}`))
    return {
      half: halfOf(query),
      confidence: matches[0]?.confidence ?? 0,
      abstained,
      first: right[0] ?? false,
      withinFive: right.includes(true),
      withinFiveOrNamesake: matches.some(({ tool }) => gold.some((id) => id.endsWith(`::${tool}`)))
    }
  })
}

function percent(answers: readonly Answer[], holds: (answer: Answer) => boolean): number {
  return round((100 * answers.filter(holds).length) / Math.max(1, answers.length))
}

function figuresOf(answers: readonly Answer[]) {
  return {
    first: percent(answers, ({ first }) => first),
    withinFive: percent(answers, ({ withinFive }) => withinFive),
    withinFiveOrNamesake: percent(answers, ({ withinFiveOrNamesake }) => withinFiveOrNamesake),
    calibrationError: round(calibrationError(answers)),
    calibrationErrorByChance: round(chanceError(answers)),
    abstained: percent(answers, ({ abstained }) => abstained),
    requests: answers.length
  }
}

function heapMb(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed / 2 ** 20
}

/** 2,991 tools with the whole usage history: the slowest case that a user will see. */
async function speed(folder: string): Promise<object> {
  const set = await readRoutingSet(folder, 'metatool', { distractors: true, examplesPerTool: 1000 })
  const long = await readRoutingSet(folder, 'stabletoolbench')
  const before = heapMb()
  const router = routerFor({ ...set, usage: [] })
  const indexMb = heapMb() - before
  const time = (requests: { query: string }[]): { p50: number; p95: number } => {
    const times = requests.map(({ query }) => {
      const start = performance.now()
      router.find(query)
      return performance.now() - start
    })
    return { p50: round(quantile(times, 0.5)), p95: round(quantile(times, 0.95)) }
  }
  const asked = set.requests.slice(0, 1500)
  time(asked)
  const short = time(asked)
  const paragraphs = time(long.requests)
  const [server = '', tools = []] = [...byServer(set.tools)].at(-1) ?? []
  const start = performance.now()
  for (let turn = 0; turn < 100; turn += 1) router.setServer(server, tools)
  const setServerMs = (performance.now() - start) / 100
  for (const example of set.usage) router.learn(example)
  const usageMb = heapMb() - before - indexMb
  time(asked)
  return {
    tools: set.tools.length,
    findMs: short,
    findLongRequestMs: paragraphs,
    findWithUsageMs: time(asked),
    findLongRequestWithUsageMs: time(long.requests),
    setServerMs: round(setServerMs),
    // Means little without --expose-gc.
    indexMb: round(indexMb),
    usageMb: round(usageMb),
    examples: set.usage.length
  }
}

export async function routingFigures(folder: string): Promise<object> {
  const vectors = await openVectors()
  const rows: Row[] = []
  for (const each of SETS) {
    console.error(`routing: ${each.label}`)
    const set = await readRoutingSet(folder, each.name, each.options)
    const words = ask(set, undefined)
    const meaning = vectors && ask(set, await vectors.similaritiesFor(set))
    const halves = (half: 0 | 1) => {
      const of = (answers: Answer[]) => figuresOf(answers.filter((answer) => answer.half === half))
      return { words: of(words), ...(meaning ? { meaning: of(meaning) } : {}) }
    }
    rows.push({ ...each, tuning: halves(0), test: halves(1) })
  }
  console.error(tableOf(rows))
  return { sets: rowsOf(rows), speed: await speed(folder) }
}
