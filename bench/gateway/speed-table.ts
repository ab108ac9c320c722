import type { CallTimes, Throughput } from './calls.ts'
import type { FirstList } from './first-list.ts'
import type { StartTimes } from './start.ts'

interface Speeds extends StartTimes {
  stdioCallMs: CallTimes
  stdioThroughput: Throughput
  httpCallMs: CallTimes
  httpThroughput: Throughput
  firstList: FirstList
}

type Get = (speeds: Speeds, way: string) => number | undefined

/** Before: measured on a quiet machine when the goals were set. The figures are ratios to calling the same child directly, over stdio. */
const ROWS: [what: string, way: string, get: Get, before: number, goal: string][] = [
  ['stdio, p50', 'gateway', ({ stdioCallMs }, way) => stdioCallMs[way]?.ratio, 2.25, '1.8 or less'],
  [
    'stdio, throughput',
    'gateway',
    ({ stdioThroughput }, way) => stdioThroughput.ways[way]?.share,
    0.45,
    '0.75 or more'
  ],
  ['HTTP, p50', 'gateway', ({ httpCallMs }, way) => httpCallMs[way]?.ratioToStdio, 3.72, '3.2 or less'],
  [
    'HTTP, throughput',
    'gateway',
    ({ httpThroughput }, way) => httpThroughput.ways[way]?.shareOfStdio,
    0.29,
    '0.40 or more'
  ],
  ['--expose, stdio, p50', 'exposed', ({ stdioCallMs }, way) => stdioCallMs[way]?.ratio, 2.65, '1.9 or less'],
  [
    '--expose, stdio, throughput',
    'exposed',
    ({ stdioThroughput }, way) => stdioThroughput.ways[way]?.share,
    0.39,
    '0.70 or more'
  ],
  ['--expose, HTTP, p50', 'exposed', ({ httpCallMs }, way) => httpCallMs[way]?.ratioToStdio, 4.88, '3.3 or less'],
  [
    '--expose, HTTP, throughput',
    'exposed',
    ({ httpThroughput }, way) => httpThroughput.ways[way]?.shareOfStdio,
    0.18,
    '0.38 or more'
  ]
]
const COLUMNS = ['ratio to the child', 'before', 'now', 'goal', 'a relay that only copies bytes, now']

/** `relayToStdio` takes HTTP and speaks stdio to the child, as the gateway does. */
export function speedTable(speeds: Speeds): string {
  const shown = (value: number | undefined) => value?.toFixed(2) ?? ''
  const rows = ROWS.map(([what, way, get, before, goal]) => {
    const relay = get(speeds, what.includes('HTTP') ? 'relayToStdio' : 'relay')
    return [what, shown(before), shown(get(speeds, way)), goal, shown(relay)]
  })
  const start = speeds.startToListMs.oneServer
  const { directS, coldS, coldTools, allTools, secondStartS } = speeds.firstList
  const listed = `first list of eight servers exposed, cold, s (${coldTools} of ${allTools} tools)`
  rows.push(
    [listed, '3.20', shown(coldS), 'without waiting for the slowest', `all started directly: ${shown(directS)}`],
    ['first list of eight servers exposed, second start, s', '', shown(secondStartS), 'at once', ''],
    ['start to first list, ratio to a bare server', '1.66', shown(start?.ratio), 'no worse', ''],
    ['memory when idle, MB (PSS)', '38', String(speeds.memoryWithEightServers.idle.pssMb), 'no worse', ''],
    ['memory with embeddings, MB (PSS)', '', String(speeds.memoryWithEmbeddings?.pssMb ?? 'not installed'), '', '']
  )
  const table = [COLUMNS, ...rows]
  const widths = COLUMNS.map((_, at) => Math.max(...table.map((line) => line[at]?.length ?? 0)))
  return table.map((line) => line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')).join('\n')
}
