import { expect, it } from 'vitest'
import { AppError } from '../lib/errors.ts'
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

it('takes no time for a call that was never sent, such as one that a person rejected', async () => {
  const { observer, text } = createMetrics()
  observer.called({ server: 'a', door: 'stdio', outcome: 'refused', ms: undefined, attempts: 1 })
  const shown = await text()
  expect(shown).toContain('mcp_orchestrator_calls_total{server="a",door="stdio",outcome="refused"} 1')
  expect(shown).not.toContain('mcp_orchestrator_call_seconds_count{server="a"}')
})

it('counts failures below the faces, and not the answers that belong to the protocol between instances', async () => {
  const { core, text } = createMetrics()
  core.stored('checkpoints', { name: 'commit', ms: 3, error: new AppError('unavailable', 'disk_full', 'Full.') })
  core.stored('events', {
    name: 'append',
    ms: 3,
    error: new AppError('conflict', 'event_exists', 'Somebody was first.')
  })
  core.engine({ name: 'create', ms: 300 })
  core.engine({ name: 'create', ms: 300, error: new Error('unexpected') })
  core.modelStep({ provider: 'demo', ms: 20, inputTokens: 5, outputTokens: 7 })
  core.modelStep({ provider: 'demo', ms: 20, error: new AppError('unavailable', 'model_overloaded', 'Later.') })
  core.turnEnded('error')
  core.modeChanged('review')
  core.changesFailed('wait')
  core.storeEmptied()
  core.forked({ ms: 20 })
  core.forked({ ms: 1, error: new AppError('unavailable', 'too_many_sessions', 'Full.') })
  core.refused('socket', 'too_fast')
  core.refused('http', 'too_fast', 'wrong_tokens')
  const shown = await text()
  for (const line of [
    'store_errors_total{part="checkpoints",operation="commit",code="disk_full"} 1',
    'checkpoint_failures_total{code="disk_full"} 1',
    'store_seconds_count{part="events"} 1',
    'sandbox_starts_total 1',
    'sandbox_start_failures_total{code="internal"} 1',
    'model_tokens_total{provider="demo",direction="output"} 7',
    'model_errors_total{provider="demo",code="model_overloaded"} 1',
    'turns_total{reason="error"} 1',
    'mode_changes_total{mode="review"} 1',
    'fork_starts_total 1',
    'fork_start_seconds_count 1',
    'accepted_changes_failed_total{outcome="wait"} 1',
    'store_emptied_total 1',
    'fork_refusals_total{code="too_many_sessions"} 1',
    'refusals_total{face="socket",code="too_fast"} 1',
    'refusals_total{face="http",code="too_fast",reason="wrong_tokens"} 1'
  ])
    expect(shown).toContain(`mcp_orchestrator_${line}`)
  expect(shown).not.toContain('event_exists')
})
