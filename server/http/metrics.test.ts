import { expect, it } from 'vitest'
import { createMetrics } from './metrics.ts'

it('shows what it can read, also when a part of it can not be read', async () => {
  const metrics = createMetrics({
    good: { help: 'Works.', read: () => 7 },
    away: { help: 'Does not.', read: () => Promise.reject(new Error('no store')) }
  })
  const text = await metrics()
  expect(text).toContain('mcp_orchestrator_good 7')
  expect(text).toContain('mcp_orchestrator_away Nan')
  expect(text).toContain('process_resident_memory_bytes')
})
