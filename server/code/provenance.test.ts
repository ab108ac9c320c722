import { expect, it } from 'vitest'
import { cpuMs } from '../../tests/support/cpu-ms.ts'
import { sourcesOf } from './provenance.ts'
import type { RunState } from './run-log.ts'

/** A run whose calls have ended with these results. */
function run(results: unknown[]): RunState {
  const calls = results.map((value, at) => {
    const call = { n: at + 1, kind: 'tool' as const, server: 'crm', tool: 'read', args: {}, line: 1 }
    const state = { call, starts: 1, decisions: [], done: { outcome: { ok: true as const, value }, at: 0 } }
    return [at + 1, state] as const
  })
  return {
    ...{ program: undefined, runtime: undefined, end: undefined, endedAt: undefined, logs: [] },
    ...{ calls: new Map(calls), order: calls.map(([n]) => n) }
  }
}

it('names the latest result that has a value, or whose texts are part of it', () => {
  const state = run([{ mail: 'ada@example.test' }, { mail: 'ada@example.test', id: 12345 }, 'nothing'])
  const args = { to: 'ada@example.test', items: [{ text: 'Dear ada@example.test,' }], number: 12345, other: 'unknown' }
  expect(sourcesOf(args, state).map(({ path, n }) => [path, n])).toEqual([
    ['to', 2],
    ['items[0].text', 2],
    ['number', 2]
  ])
})

// Checked: without a limit, the card has the whole key.
it('shortens the path of a value in a place with a long name', () => {
  const [source] = sourcesOf({ ['k'.repeat(900_000)]: 'ada@example.test' }, run(['ada@example.test']))
  expect(source?.path).toHaveLength(200)
})

// Checked: without a limit for the work, one card takes more than three minutes.
it('costs little time, however much a program has read and writes', async () => {
  const many = Array.from({ length: 5000 }, (_, at) => `${'a'.repeat(20)}${at}z`)
  const state = run(Array.from({ length: 100 }, () => many))
  const wide = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`k${at}`, `${'a'.repeat(900)}${at}`]))
  for (const args of [{ text: 'a'.repeat(900_000) }, wide])
    expect(await cpuMs(() => sourcesOf(args, state))).toBeLessThan(1000)
  const large = run(Array.from({ length: 8 }, (_, at) => `${at}${'b'.repeat(7_900_000)}`))
  expect(await cpuMs(() => sourcesOf(wide, large))).toBeLessThan(1000)
})
