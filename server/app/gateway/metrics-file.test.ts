import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { eventually } from '../../../tests/support/eventually.ts'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { createLogger } from '../../lib/logger.ts'
import { openMetricsFile } from './metrics-file.ts'

function place() {
  const dir = temporaryFolder()
  const said: string[] = []
  const logger = createLogger('silent')
  logger.warn = (line: unknown) => void said.push(String(line))
  return { dir, file: join(dir, 'new', 'gateway.prom'), said, logger }
}

it('has the current counts, and is replaced as a whole', async () => {
  const { dir, file, logger } = place()
  const metrics = openMetricsFile(file, logger, 5)
  metrics.watchServers(() => [{ server: 'a', breaker: 'open', running: 2, busy: 1 }])
  await eventually('the file to be there', () => existsSync(file))
  metrics.observer.called({ server: 'a', door: 'stdio', outcome: 'ok', ms: 12, attempts: 1 })
  const counted = 'mcp_orchestrator_calls_total{server="a",door="stdio",outcome="ok"} 1'
  await eventually('the call to be counted', () => readFileSync(file, 'utf8').includes(counted))
  metrics.observer.startFailed('a', 'server_failed')
  await metrics.close()
  const text = readFileSync(file, 'utf8')
  expect(text).toContain('mcp_orchestrator_server_start_failures_total{server="a"} 1')
  expect(text).toContain('mcp_orchestrator_server_breaker{server="a",state="open"} 1')
  expect(text).toContain('mcp_orchestrator_server_connections{server="a"} 2')
  expect(statSync(file).mode & 0o777).toBe(0o644)
  expect(readdirSync(join(dir, 'new'))).toEqual(['gateway.prom'])
})

// Checked: if the text is written to the path itself, the file behind the link is overwritten.
it('is never written through a link, and the reason is reported once', async () => {
  const { dir, logger, said } = place()
  const target = join(dir, 'target')
  const link = join(dir, 'link.prom')
  writeFileSync(target, 'kept')
  symlinkSync(target, link)
  const metrics = openMetricsFile(link, logger, 5)
  await eventually('the reason to be reported', () => said.length > 0)
  await metrics.close()
  await metrics.close()
  expect(said).toEqual([`METRICS_FILE ${link} can't be written: it is not a regular file.`])
  expect(readFileSync(target, 'utf8')).toBe('kept')
})

it('does not prevent calls if it can not be written', async () => {
  const { dir, logger, said } = place()
  mkdirSync(join(dir, 'folder'))
  const metrics = openMetricsFile(join(dir, 'folder'), logger)
  metrics.observer.called({ server: 'a', door: 'stdio', outcome: 'ok', ms: 12, attempts: 1 })
  await metrics.close()
  expect(said).toHaveLength(1)
})
