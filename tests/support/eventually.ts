import { PATIENCE_MS } from './patience-ms.ts'

/** Waits until the check is true. The error names what did not become true. */
export async function eventually(
  what: string,
  check: () => Promise<boolean> | boolean,
  withinMs = 2 * PATIENCE_MS
): Promise<void> {
  const until = performance.now() + withinMs
  while (!(await check())) {
    if (performance.now() > until) throw new Error(`Not within ${withinMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
