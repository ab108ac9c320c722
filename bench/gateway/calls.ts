/** Measures the latency and throughput of calls on each way. The ways alternate, block by block. */
import { round, summary } from '../statistics.ts'
import { cpuMs, type Way } from './ways.ts'

const BLOCK = 50
const BLOCKS = 40
const WARM_UP_BLOCKS = 10
const IN_FLIGHT = 32
const BURST = 1600
const BURSTS = 7

export type CallTimes = Record<string, { p50: number; ratio: number; ratioToStdio?: number }>
export interface Throughput {
  inFlight: number
  ways: Record<string, { callsPerSecond: number; share: number; shareOfStdio?: number }>
}

/** Times of sequential calls, their ratio to `direct` (and `directStdio`) at p50, and the CPU time of the process in between. */
export async function callTimes(ways: Record<string, Way>): Promise<CallTimes> {
  const measured = await inTurns(ways, { rounds: BLOCKS, warmUps: WARM_UP_BLOCKS, calls: BLOCK }, oneByOne)
  const p50 = (wanted: string) => summary(measured[wanted]?.values ?? []).p50
  return mapValues(measured, ({ values, cpuMsPerCall }) => {
    const ms = summary(values)
    const toStdio = 'directStdio' in ways ? { ratioToStdio: round(ms.p50 / p50('directStdio')) } : {}
    return { ...ms, ratio: round(ms.p50 / p50('direct')), ...toStdio, cpuMsPerCall }
  })
}

/** Calls per second with 32 in flight; the median of several bursts. */
export async function throughput(ways: Record<string, Way>): Promise<Throughput> {
  const measured = await inTurns(ways, { rounds: BURSTS, warmUps: 2, calls: BURST }, burstRate)
  const direct = summary(measured.direct?.values ?? []).p50
  const stdio = measured.directStdio && summary(measured.directStdio.values).p50
  const figures = mapValues(measured, ({ values, cpuMsPerCall }) => {
    const { p50 } = summary(values)
    const ofStdio = stdio === undefined ? {} : { shareOfStdio: round(p50 / stdio) }
    return { callsPerSecond: Math.round(p50), share: round(p50 / direct), ...ofStdio, cpuMsPerCall }
  })
  return { inFlight: IN_FLIGHT, ways: figures }
}

/** Measures all ways, round by round, beginning with another one each time. */
async function inTurns(
  ways: Record<string, Way>,
  { rounds, warmUps, calls }: { rounds: number; warmUps: number; calls: number },
  run: (way: Way) => Promise<number[]>
) {
  const all = Object.entries(ways).map(([name, way]) => ({ name, way, values: [] as number[], cpu: [] as number[] }))
  for (let turn = 0; turn < warmUps + rounds; turn++) {
    for (const { way, values, cpu } of [...all.slice(turn % all.length), ...all.slice(0, turn % all.length)]) {
      const before = cpuMs(way.pid)
      const found = await run(way)
      if (turn < warmUps) continue
      values.push(...found)
      cpu.push((cpuMs(way.pid) - before) / calls)
    }
  }
  return Object.fromEntries(all.map(({ name, values, cpu }) => [name, { values, cpuMsPerCall: summary(cpu).p50 }]))
}

function mapValues<T, R>(record: Record<string, T>, change: (value: T) => R): Record<string, R> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))
}

async function oneByOne(way: Way): Promise<number[]> {
  const times: number[] = []
  for (let call = 0; call < BLOCK; call++) {
    const started = performance.now()
    await way.echo(`hello ${call}`)
    times.push(performance.now() - started)
  }
  return times
}

async function burstRate(way: Way): Promise<number[]> {
  let next = 0
  const started = performance.now()
  const lane = async () => {
    while (next < BURST) await way.echo(`hello ${next++}`)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  return [BURST / ((performance.now() - started) / 1000)]
}
