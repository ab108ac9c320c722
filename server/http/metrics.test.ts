import { expect, it } from 'vitest'
import { createMetrics } from './metrics.ts'

it('shows what it can read, also when a part of it can not be read', async () => {
  const metrics = createMetrics()
  metrics.watch({
    good: { help: 'Works.', read: () => 7 },
    away: { help: 'Does not.', read: () => Promise.reject(new Error('no store')) }
  })
  const text = await metrics.text()
  expect(text).toContain('mcp_orchestrator_good 7')
  expect(text).toContain('mcp_orchestrator_away Nan')
  expect(text).toContain('process_resident_memory_bytes')
})

it('counts calls, decisions, starts and denials, by server', async () => {
  const { observer, text } = createMetrics()
  observer.called({ server: 'a', door: 'stdio', outcome: 'ok', ms: 30, attempts: 3 })
  observer.routed('execute', 'abstained')
  observer.started('a', 400, false)
  observer.started('a', 400, true)
  observer.startFailed('b', 'server_failed')
  observer.denied('b')
  const shown = await text()
  expect(shown).toContain('mcp_orchestrator_calls_total{server="a",door="stdio",outcome="ok"} 1')
  expect(shown).toContain('mcp_orchestrator_call_retries_total{server="a"} 2')
  expect(shown).toContain('mcp_orchestrator_call_seconds_bucket{le="0.1",server="a"} 1')
  expect(shown).toContain('mcp_orchestrator_routing_decisions_total{by="execute",outcome="abstained"} 1')
  expect(shown).toContain('mcp_orchestrator_server_starts_total{server="a"} 2')
  expect(shown).toContain('mcp_orchestrator_server_restarts_total{server="a"} 1')
  expect(shown).toContain('mcp_orchestrator_server_start_failures_total{server="b"} 1')
  expect(shown).toContain('mcp_orchestrator_egress_denials_total{server="b"} 1')
})

it('reads the servers as they are, and has a bounded number of labels', async () => {
  const metrics = createMetrics()
  let names = Array.from({ length: 300 }, (_, i) => `s${i}`)
  metrics.watchServers(() => names.map((server) => ({ server, breaker: 'open', running: 1, busy: 2 })))
  const text = await metrics.text()
  expect(text).toContain('mcp_orchestrator_server_breaker{server="s7",state="open"} 1')
  expect(text).toContain('mcp_orchestrator_server_connections{server="other"} 100')
  expect(text.match(/server_calls_running\{/g)).toHaveLength(201)
  names = ['s1']
  expect((await metrics.text()).match(/server_calls_running\{/g)).toHaveLength(1)
})
