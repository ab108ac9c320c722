import { afterEach, expect, it, vi } from 'vitest'
import { CodeRuns } from '../../code/code-runs.ts'
import { fakeEventLog } from '../../code/fake-event-log.ts'
import { outcomeOfRun } from '../../code/run-answer.ts'
import { loadSettings } from '../../config/load-settings.ts'
import { silentLogger } from '../../lib/logger.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { fakeKeyValueStore } from '../../storage/fake-key-value-store.ts'
import { openRealms } from './code-realms.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

it('tells the caller of run_code that there is no engine, and what to do', async () => {
  const settings = loadSettings({ env: {} })
  vi.stubEnv('DOCKER_HOST', 'unix:///no/such/engine.sock')
  const realms = await openRealms(settings, silentLogger, process.env, undefined)
  const keyValues = fakeKeyValueStore()
  const runs = new CodeRuns({
    ...{ events: fakeEventLog(), keyValues, inbox: new ApprovalInbox(keyValues), logger: silentLogger, home: 'test' },
    ...{ openRealm: (request) => realms.open(request), limits: settings }
  })
  const calls = { run: async () => ({ ok: true as const, value: null }) }
  const runId = await runs.start({ code: '1 + 1', asker: { owner: 'local', door: 'stdio' }, calls })
  const report = await runs.report(runId, { owner: 'local', calls })
  expect(report.status).toBe('ended')
  expect(outcomeOfRun(report.state)).toMatchObject({
    error: { code: 'engine_unavailable', message: expect.stringMatching(/start Docker/i) }
  })
  await runs.close()
  await realms.close()
})
