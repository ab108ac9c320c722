/** The load run as a page: a table, and a plot that any browser shows. */
import { quantile, round } from '../../bench/statistics.ts'
import type { LoadRun, Sample } from './load.ts'

export interface Verdict {
  turns: number
  errors: number
  callP50: number
  callP99: number
  turnP50: number
  turnP99: number
  /** Mean of the last quarter relative to the mean of the second, which reveals growth. */
  memoryGrowth: number
  filesGrowth: number
  containersMost: number
}

const SLICES = 10
const MAX_DOTS = 1500
const WIDTH = 720
const HEIGHT = 150
const LEFT = 56

/** Calls in the first minute are left out: they also wait for their containers to start. */
const WARM_UP_MS = 60_000

export function verdict({ timings, samples, errors, options }: LoadRun): Verdict {
  const from = options.seconds * 1000 > 2 * WARM_UP_MS ? WARM_UP_MS : 0
  const warm = timings.filter(({ at }) => at >= from)
  const calls = warm.map(({ callMs }) => callMs)
  const turns = warm.map(({ turnMs }) => turnMs)
  return {
    turns: timings.length,
    errors: errors.length,
    callP50: round(quantile(calls, 0.5)),
    callP99: round(quantile(calls, 0.99)),
    turnP50: round(quantile(turns, 0.5)),
    turnP99: round(quantile(turns, 0.99)),
    memoryGrowth: growth(samples, ({ memoryMb }) => memoryMb),
    filesGrowth: growth(samples, ({ openFiles }) => openFiles),
    containersMost: Math.max(...samples.map(({ containers }) => containers))
  }
}

function growth(samples: Sample[], read: (sample: Sample) => number): number {
  const quarter = Math.floor(samples.length / 4)
  const mean = (some: Sample[]) => some.reduce((sum, sample) => sum + read(sample), 0) / Math.max(1, some.length)
  return round(mean(samples.slice(-quarter)) / mean(samples.slice(quarter, 2 * quarter)) - 1)
}

export function toMarkdown(run: LoadRun, pictureFile: string): string {
  const { sessions, seconds } = run.options
  const all = verdict(run)
  const lines = [
    '# Under load',
    '',
    `${sessions} sessions on one server and one engine for ${seconds} s, each with its own container. Every few seconds each session runs a`,
    'turn of the demo model with a real tool call, which is approved. Measured by `npm run test:load`; the clients run on the same machine.',
    '',
    `![Latency, memory, open files and containers over time](${pictureFile})`,
    '',
    '| | |',
    '|---|---|',
    `| turns | ${all.turns} |`,
    `| errors | ${all.errors} |`,
    `| tool call after the first minute, from the approval to the result, p50 / p99 | ${all.callP50} / ${all.callP99} ms (${round(all.callP99 / all.callP50)} times) |`,
    `| turn after the first minute, from the message to its end, p50 / p99 | ${all.turnP50} / ${all.turnP99} ms |`,
    `| memory of the server, last quarter against the second | ${percent(all.memoryGrowth)} |`,
    `| open files of the server, the same | ${percent(all.filesGrowth)} |`,
    `| containers at most | ${all.containersMost} |`,
    '',
    '| from s | turns | call p50 ms | call p99 ms | memory MB | open files | containers |',
    '|---|---|---|---|---|---|---|',
    ...slices(run)
  ]
  return `${lines.join('\n')}\n`
}

function slices({ timings, samples, options }: LoadRun): string[] {
  const ms = (options.seconds * 1000) / SLICES
  return Array.from({ length: SLICES }, (_, index) => {
    const isIn = ({ at }: { at: number }) => at >= index * ms && at < (index + 1) * ms
    const calls = timings.filter(isIn).map(({ callMs }) => callMs)
    const last = samples.findLast(isIn)
    const cells = [
      Math.round((index * ms) / 1000),
      calls.length,
      round(quantile(calls, 0.5)),
      round(quantile(calls, 0.99)),
      last?.memoryMb ?? '',
      last?.openFiles ?? '',
      last?.containers ?? ''
    ]
    return `| ${cells.join(' | ')} |`
  })
}

export function toSvg({ timings, samples, options }: LoadRun): string {
  const total = options.seconds * 1000
  // Enough to see the shape, and every slow one.
  const every = Math.ceil(timings.length / MAX_DOTS)
  const slow = quantile(
    timings.map(({ callMs }) => callMs),
    0.98
  )
  const calls = timings
    .filter(({ callMs }, index) => index % every === 0 || callMs > slow)
    .map(({ at, callMs }) => ({ at, value: callMs }))
  const of = (read: (sample: Sample) => number) => samples.map((sample) => ({ at: sample.at, value: read(sample) }))
  const panels = [
    panel('tool call, ms', calls, total, true),
    panel(
      'memory of the server, MB',
      of(({ memoryMb }) => memoryMb),
      total
    ),
    panel(
      'open files of the server',
      of(({ openFiles }) => openFiles),
      total
    ),
    panel(
      'containers',
      of(({ containers }) => containers),
      total
    )
  ]
  const rows = panels.map((body, index) => `<g transform="translate(0 ${index * (HEIGHT + 40) + 24})">${body}</g>`)
  const height = panels.length * (HEIGHT + 40) + 20
  const style = 'font: 12px sans-serif; background: white'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" style="${style}">\n<title>Latency, memory, open files and containers over time</title>\n${rows.join('\n')}\n</svg>\n`
}

function panel(title: string, points: { at: number; value: number }[], total: number, dots = false): string {
  const top = Math.max(1, ...points.map(({ value }) => value))
  const x = (at: number) => round(LEFT + (Math.min(at, total) / total) * (WIDTH - LEFT - 10))
  const y = (value: number) => round(HEIGHT - (value / top) * HEIGHT)
  const marks = dots
    ? points
        .map(({ at, value }) => `<circle cx="${x(at)}" cy="${y(value)}" r="1" fill="#2563eb" fill-opacity="0.4"/>`)
        .join('')
    : `<polyline fill="none" stroke="#2563eb" stroke-width="1.5" points="${points.map(({ at, value }) => `${x(at)},${y(value)}`).join(' ')}"/>`
  return [
    `<text x="${LEFT}" y="-8" fill="#111">${title}</text>`,
    `<path d="M${LEFT} 0V${HEIGHT}H${WIDTH - 10}" fill="none" stroke="#999"/>`,
    `<text x="${LEFT - 6}" y="10" text-anchor="end" fill="#555">${round(top)}</text>`,
    `<text x="${LEFT - 6}" y="${HEIGHT}" text-anchor="end" fill="#555">0</text>`,
    `<text x="${WIDTH - 10}" y="${HEIGHT + 14}" text-anchor="end" fill="#555">${Math.round(total / 1000)} s</text>`,
    marks
  ].join('')
}

function percent(share: number): string {
  return `${share >= 0 ? '+' : ''}${round(share * 100)} %`
}
