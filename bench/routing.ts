/** Measures how often the router's first answer (or one of its first five) is right, its calibration, and its speed. */
import type { Router } from '../server/routing/port.ts'
import { createRouter, DEFAULT_THRESHOLD } from '../server/routing/router.ts'
import { AT_ONCE } from '../server/routing/usage/usage-memory.ts'
import { calibrationError, chanceError } from './calibration.ts'
import { byServer, halfOf, type RoutingSet, readRoutingSet, type SetOptions } from './routing-data.ts'
import { quantile, round } from './statistics.ts'

interface Answer {
  half: 0 | 1
  confidence: number
  abstained: boolean
  first: boolean
  withinFive: boolean
  /** Right, or a tool of the same name: distractors hold other editions of the same servers. */
  firstOrNamesake: boolean
}

const SETS: { label: string; name: string; options: SetOptions }[] = [
  { label: 'metatool', name: 'metatool', options: {} },
  { label: 'metatool, with usage', name: 'metatool', options: { examplesPerTool: 1000 } },
  { label: 'metatool, with 5 uses per tool', name: 'metatool', options: { examplesPerTool: 5 } },
  { label: 'stabletoolbench', name: 'stabletoolbench', options: {} },
  { label: 'mcpproxy_golden', name: 'mcpproxy_golden', options: {} },
  { label: 'bfcl_live', name: 'bfcl_live', options: {} },
  { label: 'metatool + haystack', name: 'metatool', options: { distractors: true } },
  { label: 'metatool + haystack, with usage', name: 'metatool', options: { distractors: true, examplesPerTool: 1000 } },
  { label: 'stabletoolbench + haystack', name: 'stabletoolbench', options: { distractors: true } },
  { label: 'mcpproxy_golden + haystack', name: 'mcpproxy_golden', options: { distractors: true } }
]

function routerFor(set: RoutingSet): Router {
  const router = createRouter({ schedule: AT_ONCE })
  for (const [server, tools] of byServer(set.tools)) router.setServer(server, tools)
  for (const example of set.usage) router.learn(example)
  return router
}

function ask(set: RoutingSet): Answer[] {
  const router = routerFor(set)
  return set.requests.map(({ query, gold }) => {
    const { matches, abstained } = router.find(query, { limit: 5 })
    const right = matches.map(({ server, tool }) => gold.includes(`${server}::${tool}`))
    return {
      half: halfOf(query),
      confidence: matches[0]?.confidence ?? 0,
      abstained,
      first: right[0] ?? false,
      withinFive: right.includes(true),
      firstOrNamesake: gold.some((id) => id.endsWith(`::${matches[0]?.tool}`))
    }
  })
}

function percent(answers: readonly Answer[], holds: (answer: Answer) => boolean): number {
  return round((100 * answers.filter(holds).length) / Math.max(1, answers.length))
}

function figuresOf(answers: readonly Answer[]): object {
  const answered = answers.filter(({ abstained }) => !abstained)
  return {
    first: percent(answers, ({ first }) => first),
    withinFive: percent(answers, ({ withinFive }) => withinFive),
    firstOrNamesake: percent(answers, ({ firstOrNamesake }) => firstOrNamesake),
    calibrationError: round(calibrationError(answers)),
    calibrationErrorByChance: round(chanceError(answers)),
    answered: percent(answers, ({ abstained }) => !abstained),
    rightWhenAnswered: percent(answered, ({ first }) => first),
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
  const sets: Record<string, object> = {}
  for (const { label, name, options } of SETS) {
    console.error(`routing: ${label}`)
    const answers = ask(await readRoutingSet(folder, name, options))
    sets[label] = {
      tuned: figuresOf(answers.filter(({ half }) => half === 0)),
      heldOut: figuresOf(answers.filter(({ half }) => half === 1)),
      all: figuresOf(answers)
    }
  }
  const irrelevant = await readRoutingSet(folder, 'bfcl_live', { irrelevant: true })
  const refused = percent(ask(irrelevant), ({ abstained }) => abstained)
  return { threshold: DEFAULT_THRESHOLD, sets, irrelevantAbstained: refused, speed: await speed(folder) }
}
