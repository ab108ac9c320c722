/** Measures the latency and throughput of calls on each way. The ways alternate, block by block. */
import { round, summary } from '../statistics.ts'
import { cpuMs, type Way } from './ways.ts'

const BLOCK = 50
const BLOCKS = 40
const WARM_UP_BLOCKS = 10
const IN_FLIGHT = 32
const BURST = 1600
const BURSTS = 7

/** Times of sequential calls, their ratio to `direct` (and `directStdio`) at p50, and the CPU time of the process in between. */
export async function callTimes(ways: Record<string, Way>): Promise<object> {
  const all = Object.entries(ways).map(([name, way]) => ({ name, way, times: [] as number[], cpu: [] as number[] }))
  for (let block = -WARM_UP_BLOCKS; block < BLOCKS; block++) {
    for (const each of rotated(all, block)) {
      const cpu = cpuMs(each.way.pid)
      const times = await oneByOne(each.way)
      if (block < 0) continue
      each.times.push(...times)
      each.cpu.push((cpuMs(each.way.pid) - cpu) / BLOCK)
    }
  }
  const p50 = (wanted: string) => summary(all.find(({ name }) => name === wanted)?.times ?? []).p50
  return Object.fromEntries(
    all.map(({ name, times, cpu }) => {
      const ms = summary(times)
      const ratio = round(ms.p50 / p50('direct'))
      const toStdio = 'directStdio' in ways ? { ratioToStdio: round(ms.p50 / p50('directStdio')) } : {}
      return [name, { ...ms, ratio, ...toStdio, cpuMsPerCall: summary(cpu).p50 }]
    })
  )
}

/** Calls per second with 32 in flight; the median of several bursts. */
export async function throughput(ways: Record<string, Way>): Promise<object> {
  const all = Object.entries(ways).map(([name, way]) => ({ name, way, rates: [] as number[], cpu: [] as number[] }))
  for (let burst = -2; burst < BURSTS; burst++) {
    for (const each of rotated(all, burst)) {
      const cpu = cpuMs(each.way.pid)
      const rate = await burstRate(each.way)
      if (burst < 0) continue
      each.rates.push(rate)
      each.cpu.push((cpuMs(each.way.pid) - cpu) / BURST)
    }
  }
  const direct = summary(all.find(({ name }) => name === 'direct')?.rates ?? []).p50
  const figures = all.map(({ name, rates, cpu }) => {
    const { p50 } = summary(rates)
    return [name, { callsPerSecond: Math.round(p50), share: round(p50 / direct), cpuMsPerCall: summary(cpu).p50 }]
  })
  return { inFlight: IN_FLIGHT, ...Object.fromEntries(figures) }
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

async function burstRate(way: Way): Promise<number> {
  let next = 0
  const started = performance.now()
  const lane = async () => {
    while (next < BURST) await way.echo(`hello ${next++}`)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  return BURST / ((performance.now() - started) / 1000)
}

/** Rotates the order, so that each goes first once. */
function rotated<T>(items: T[], by: number): T[] {
  const at = ((by % items.length) + items.length) % items.length
  return [...items.slice(at), ...items.slice(0, at)]
}
