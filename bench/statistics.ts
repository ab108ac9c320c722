export function quantile(values: number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))
  return sorted[at] ?? Number.NaN
}

export function summary(values: number[]) {
  return { p50: round(quantile(values, 0.5)), p99: round(quantile(values, 0.99)), n: values.length }
}

export function round(value: number): number {
  return Number(value.toPrecision(4))
}

/** Announces a part of a suite on stderr, and runs it. */
export function step<T>(name: string, job: () => Promise<T>): Promise<T> {
  console.error(`${name} …`)
  return job()
}

export async function timed(job: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await job()
  return performance.now() - start
}
