import { describe, expect, it } from 'vitest'
import { readEntry } from '../catalog/read-entry.ts'
import { silentLogger } from '../lib/logger.ts'
import { Denials } from './denials.ts'
import { ServerLog } from './server-log.ts'

describe('denials', () => {
  it('are logged for the first of a host and every tenfold, however many hosts there are', () => {
    const log = new ServerLog(undefined)
    const stored: [string, number][] = []
    const index = { denied: (_: unknown, target: string, count: number) => void stored.push([target, count]) }
    const denials = new Denials({ entry: readEntry('a', { command: 'x' }, 1), log, logger: silentLogger, index })
    for (let i = 0; i < 150; i++) denials.add('evil.test:443', 'it is not on the list')
    expect(stored).toEqual([1, 10, 100].map((count) => ['evil.test:443', count]))
    expect(log.tail()).toContain('[network] refused evil.test:443: it is not on the list (100 times)\n')
    for (let i = 0; i < 1000; i++) denials.add(`${i}.test:443`, 'no')
    expect(new Set(stored.map(([target]) => target)).size).toBe(51)
  })
})
