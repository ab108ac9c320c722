import { expect, it } from 'vitest'
import { createLogger } from '../../lib/logger.ts'
import { MessageFilter } from './message-filter.ts'
import { WireIds } from './wire-ids.ts'

function logOf(level: string, lines: string[]): Record<string, unknown>[] {
  const written: Record<string, unknown>[] = []
  const logger = createLogger(level, { write: (line: string) => void written.push(JSON.parse(line)) })
  const filter = new MessageFilter(new WireIds(), 1000, logger.child({ containerId: 'c1' }))
  for (const line of lines) filter.push(Buffer.from(`${line}\n`))
  return written
}

it('says in plain words what a sandbox sent in place of an answer, once, and shows its text at the level debug only', () => {
  const forged = '{"jsonrpc":"2.0","id":"7","result":{}}'
  const flood = Array.from({ length: 50 }, () => ['my secret text', forged]).flat()
  const written = logOf('info', flood)
  expect(written.map(({ containerId, msg }) => [containerId, msg])).toEqual([
    ['c1', 'A sandbox wrote something that is not an MCP message. It was ignored; the session goes on.'],
    ['c1', expect.stringMatching(/^A sandbox answered a request that nobody made\./)]
  ])
  expect(JSON.stringify(written)).not.toContain('my secret text')
  expect(logOf('debug', flood).map(({ detail }) => detail)).toContain('my secret text')
})

it('warns of nothing that comes from a sandbox that we are ending', () => {
  const written: string[] = []
  const logger = createLogger('info', { write: (line: string) => void written.push(line) })
  let isEnding = false
  const filter = new MessageFilter(new WireIds(), 1000, logger, () => isEnding)
  isEnding = true
  filter.push(Buffer.from('OCI runtime exec failed: container is not running\n'))
  expect(written).toEqual([])
  expect(filter.noise()).toContain('OCI runtime exec failed')
  isEnding = false
  filter.push(Buffer.from('noise\n'))
  expect(written).toHaveLength(1)
})
