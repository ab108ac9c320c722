/**
 * Measures what the gateway does with sentences: how often it finds the right arguments for a tool, which sentences run which tool,
 * and whether any of them runs a tool that writes. `--list` prints each sentence with what happened.
 */
import { isDeepStrictEqual } from 'node:util'
import {
  type LabelledRequest,
  type LabelledSentence,
  readLines,
  type SentenceSet,
  startEightServers,
  type ToolCall,
  writingTools
} from './sentences/eight-servers.ts'
import { fitFigures } from './sentences/fit.ts'
import { round, step } from './statistics.ts'

const SETS: readonly SentenceSet[] = ['sentences', 'fresh', 'later', 'newest']

type Gateway = Awaited<ReturnType<typeof startEightServers>>

export async function sentenceFigures(list: boolean): Promise<object> {
  return {
    routing: fitFigures(),
    filling: await step('sentences: arguments for a named tool', () =>
      freshly((gateway) => fillingFigures(gateway, list))
    ),
    ...(await runningSets(list)),
    learning: await step('sentences: learning', () => freshly(learningFigures))
  }
}

async function runningSets(list: boolean): Promise<Record<string, object>> {
  const figures: Record<string, object> = {}
  for (const set of SETS) {
    const run = () => freshly((gateway) => runningFigures(gateway, set, list))
    figures[set] = await step(`sentences: what runs, of ${set}.jsonl`, run)
  }
  return figures
}

/** In a gateway of its own: it learns from tools that are named. */
async function freshly(job: (gateway: Gateway) => Promise<object>): Promise<object> {
  const gateway = await startEightServers()
  try {
    return await job(gateway)
  } finally {
    await gateway.end()
  }
}

interface FilledRow {
  server: string
  tool: string
  request: string
  exact: boolean
  /** Some value is not the right one. */
  wrong: boolean
  got: Record<string, unknown>
}

async function fillingFigures(gateway: Gateway, list: boolean): Promise<object> {
  const rows: FilledRow[] = []
  for (const { request, server, tool, params } of readLines<LabelledRequest>('requests')) {
    const { answer, ran } = await gateway.execute({ server, tool, request })
    const got = (ran?.params ?? answer.params ?? {}) as Record<string, unknown>
    const wrong = Object.entries(got).filter(([name, value]) => !isDeepStrictEqual(value, params[name]))
    rows.push({ server, request, tool, exact: isDeepStrictEqual(got, params), wrong: wrong.length > 0, got })
  }
  const byServer = Map.groupBy(rows, ({ server }) => server)
  const exact = (some: typeof rows) => percent(some.filter((row) => row.exact).length, some.length)
  return {
    requests: rows.length,
    exactPercent: exact(rows),
    wrongValue: rows.filter(({ wrong }) => wrong).length,
    exactByServer: Object.fromEntries([...byServer].map(([server, some]) => [server, exact(some)])),
    ...(list ? { missed: rows.filter(({ exact }) => !exact) } : {})
  }
}

async function runningFigures(gateway: Gateway, set: SentenceSet, list: boolean): Promise<object> {
  const writers = writingTools()
  const rows = []
  for (const { kind, request, reads, may } of readLines<LabelledSentence>(set)) {
    const { answer, ran } = await gateway.execute({ request })
    const right = ran !== undefined && may.some((call) => isSame(call, ran))
    const wrote = ran !== undefined && writers.has(`${ran.server}/${ran.tool}`)
    const { status, server, tool, params, confidence, reason } = answer
    rows.push({ kind, request, reads, right, wrote, ran, answer: { status, server, tool, params, confidence, reason } })
  }
  const readers = rows.filter(({ reads }) => reads)
  const kinds = Map.groupBy(rows, ({ kind }) => kind)
  const table = [...kinds].map(([kind, some]) => [
    kind,
    {
      sentences: some.length,
      ranRight: some.filter(({ right }) => right).length,
      ranWrong: some.filter(({ right, ran }) => ran && !right).length,
      confirmation: some.filter(({ answer }) => answer.status === 'needs_confirmation').length,
      params: some.filter(({ answer }) => answer.status === 'needs_params').length,
      choice: some.filter(({ answer }) => answer.status === 'needs_choice').length
    }
  ])
  return {
    sentences: rows.length,
    writes: rows.filter(({ wrote }) => wrote).length,
    readersRunRightPercent: percent(readers.filter(({ right }) => right).length, readers.length),
    ranWrong: rows.filter(({ right, ran }) => ran && !right).length,
    byKind: Object.fromEntries(table),
    ...(list ? { rows: rows.filter(({ reads, right, ran }) => (reads || ran) && !right) } : {})
  }
}

/** A client finds and then names the tool for each request; after that, other requests for the same tools are asked again. */
async function learningFigures(gateway: Gateway): Promise<object> {
  const sets = SETS.map((set) => ({ set, asked: readLines<LabelledSentence>(set).filter(({ reads }) => reads) }))
  const measureAll = async () => {
    const figures: Record<string, Awaited<ReturnType<typeof measureLearned>>> = {}
    for (const { set, asked } of sets) figures[set] = await measureLearned(gateway, asked)
    return figures
  }
  const before = await measureAll()
  const history = readLines<LabelledRequest>('requests')
  for (const { request, server, tool, params } of history) {
    await gateway.gateway.call('find_tool', { query: request })
    await gateway.execute({ server, tool, params })
  }
  const after = await measureAll()
  const rows = sets.map(({ set, asked }) => [set, { asked: asked.length, before: before[set], after: after[set] }])
  return { history: history.length, ...Object.fromEntries(rows) }
}

async function measureLearned(gateway: Gateway, asked: readonly LabelledSentence[]) {
  let first = 0
  let ranRight = 0
  let ranWrong = 0
  for (const { request, may } of asked) {
    const found = (await gateway.gateway.call('find_tool', { query: request })).structuredContent as {
      matches: { server: string; tool: string }[]
    }
    const [best] = found.matches
    if (may.some(({ server, tool }) => server === best?.server && tool === best.tool)) first += 1
    const { ran } = await gateway.execute({ request })
    if (ran === undefined) continue
    if (may.some((call) => isSame(call, ran))) ranRight += 1
    else ranWrong += 1
  }
  const share = (part: number) => percent(part, asked.length)
  return { firstPercent: share(first), ranRightPercent: share(ranRight), ranWrong }
}

function isSame(a: ToolCall, b: ToolCall): boolean {
  return a.server === b.server && a.tool === b.tool && isDeepStrictEqual(a.params, b.params)
}

function percent(part: number, all: number): number {
  return round((100 * part) / Math.max(1, all))
}
