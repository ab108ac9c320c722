import { afterAll, expect, it } from 'vitest'
import { stopServers } from '../support/serve.ts'
import { load } from './load.ts'
import { toMarkdown, toSvg, verdict } from './report.ts'

afterAll(stopServers)

/** The short form of `npm run test:load`: proves that it works and that nobody gets another's answer; figures need the long one. */
it('holds 8 sessions at work without an error, one container each', { timeout: 120_000 }, async () => {
  const run = await load({ sessions: 8, seconds: 15, pauseMs: 1000, sampleMs: 1000 })
  expect(run.errors).toEqual([])
  const { turns, containersMost } = verdict(run)
  expect(turns).toBeGreaterThanOrEqual(8)
  expect(containersMost).toBe(8)
  expect(toMarkdown(run, 'x.svg')).toContain('| errors | 0 |')
  expect(toSvg(run)).toContain('polyline')
})
