import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { KnownSecrets } from '../lib/known-secrets.ts'
import { openAudit } from './audit.ts'
import type { RowBody } from './audit-row.ts'
import { AuditWriter } from './audit-writer.ts'
import { verifyAudit } from './verify-audit.ts'

const limits = { maxBytes: 1e8, maxAgeMs: 1e9 }
let dir: string
beforeEach(() => {
  dir = join(temporaryFolder(), 'audit')
})

const onDisk = () => {
  const texts = readdirSync(dir).map((name) => readFileSync(join(dir, name), 'utf8'))
  return texts.join('')
}
const verified = () => verifyAudit([dir]).map(({ state, problems }) => [state, problems])

it('has the row of each of many calls on disk before it lets the call go on', async () => {
  const secrets = new KnownSecrets()
  const audit = openAudit({ dir, version: '1', ...limits, maxRouteBytes: 1e8, secrets, withArguments: false })
  const caller = { owner: 'local', door: 'stdio' } as const
  const ends = await Promise.all(
    Array.from({ length: 40 }, async (_, at) => {
      const end = await audit.beginTogether({ caller, server: 's', tool: `tool-${at}`, args: {} })
      expect(onDisk()).toContain(`"tool-${at}"`)
      return end
    })
  )
  for (const end of ends) end({ outcome: 'ok' })
  await audit.close()
  const rows = onDisk()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const begun = rows.filter(({ kind }) => kind === 'begin').map(({ seq }) => seq)
  expect(rows.filter(({ kind }) => kind === 'end').map(({ call }) => call)).toEqual(begun)
  expect(verified()).toEqual([['intact', []]])
})

// Checked: without the rollback, the next row continues a chain that is not on disk, and `verify` finds a broken link.
it('refuses every call of a group that can not be written, and records the gap', async () => {
  const writer = new AuditWriter({ dir, version: '1', family: 'calls', ...limits })
  const row = (tool: string): RowBody => {
    return { kind: 'begin', who: { owner: 'local', door: 'stdio' }, server: 's', tool, argumentsHash: '' }
  }
  writeFileSync(dir, 'a file where the folder should be')
  const refused = await Promise.allSettled(['a', 'b', 'c'].map((tool) => writer.writeTogether(row(tool))))
  const codes = refused.map((each) => each.status === 'rejected' && each.reason.code)
  expect(codes).toEqual(['audit_unavailable', 'audit_unavailable', 'audit_unavailable'])
  rmSync(dir)
  const [first, second] = await Promise.all(['d', 'e'].map((tool) => writer.writeTogether(row(tool))))
  expect(second).toBe(Number(first) + 1)
  const late = writer.writeTogether(row('late'))
  writer.close(2)
  await expect(late).rejects.toMatchObject({ code: 'shutting_down' })
  expect(onDisk()).not.toMatch(/"tool":"(a|b|c|late)"/)
  expect(onDisk()).toContain('"refused":3')
  expect(verified()).toEqual([['intact', []]])
})
