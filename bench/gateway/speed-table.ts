import type { CallTimes, Throughput } from './calls.ts'

interface Speeds {
  stdioCallMs: CallTimes
  stdioThroughput: Throughput
  httpCallMs: CallTimes
  httpThroughput: Throughput
}

type Get = (speeds: Speeds, way: string) => number | undefined

/** Before: measured on a quiet machine when the goals were set. All figures are ratios to calling the same child directly, over stdio. */
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
  const table = [COLUMNS, ...rows]
  const widths = COLUMNS.map((_, at) => Math.max(...table.map((line) => line[at]?.length ?? 0)))
  return table.map((line) => line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')).join('\n')
}
