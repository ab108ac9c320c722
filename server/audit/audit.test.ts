import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hasHidden } from '../../contract/hidden-characters.ts'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { KnownSecrets } from '../lib/known-secrets.ts'
import { type Audit, type AuditOptions, openAudit } from './audit.ts'
import { auditFileName, listAuditFiles } from './audit-files.ts'
import { FIRST_PREV, sealRow } from './audit-row.ts'
import { removalRecords } from './prune-list.ts'
import { readAudit } from './read-audit.ts'
import { verifyAudit } from './verify-audit.ts'

const caller = { owner: 'local', door: 'stdio' } as const
let dir: string
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

function open(more: Partial<AuditOptions> = {}): Audit {
  const usual = {
    version: '1',
    maxBytes: 1e8,
    maxRouteBytes: 1e8,
    maxAgeMs: 1e9,
    secrets: new KnownSecrets(),
    withArguments: false
  }
  return openAudit({ dir: join(dir, 'audit'), ...usual, ...more })
}

function call(audit: Audit, tool = 'echo', args: unknown = {}): void {
  audit.begin({ caller, server: 'everything', tool, args })({ outcome: 'ok', attempts: 1 })
}

const folder = () => join(dir, 'audit')
const paths = () => readdirSync(folder()).map((name) => join(folder(), name))
const onlyPath = () => String(paths()[0])
const linesOf = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n')
const states = () => verifyAudit([folder()]).map(({ state }) => state)
const read = (filter = {}) => readAudit([folder()], { limit: 100, ...filter })

describe('the audit log', () => {
  it('keeps every call and decision, visible only to its owner', async () => {
    const audit = open()
    const candidates = [{ server: 'everything', tool: 'echo', confidence: 0.9 }]
    audit.decided({ caller, by: 'execute', request: 'say hi', candidates, outcome: 'chosen', ms: 1.5 })
    call(audit, 'echo', { b: 1, a: [2] })
    audit.begin({ caller: { owner: 'cookie-name', door: 'chat', session: 's1' }, server: 'x', tool: 'y', args: {} })
    await audit.close()
    const [open1, echo, route] = read().entries
    expect(route).toMatchObject({ kind: 'route', by: 'execute', requestLength: 6, candidates, outcome: 'chosen' })
    expect(route?.requestHash).toBe(createHash('sha256').update('say hi').digest('hex'))
    expect(echo).toMatchObject({ kind: 'call', server: 'everything', tool: 'echo', outcome: 'ok', attempts: 1 })
    // Independent of the order of keys: {"a":[2],"b":1}
    expect(echo?.argumentsHash).toBe('63c9663de90ee828bbda6cd9acf02d0c653986c1ec25aa239920641edc9a1de5')
    expect(open1).toMatchObject({ session: 's1', outcome: 'unknown' })
    expect(JSON.stringify(open1)).not.toContain('cookie-name')
    expect(statSync(folder()).mode & 0o777).toBe(0o700)
    expect(statSync(onlyPath()).mode & 0o777).toBe(0o600)
    expect(states()).toEqual(['intact', 'intact'])
  })

  it('escapes hidden characters and restores them when read', async () => {
    const sly = 'read\u202e\u{e0041}\u{e0080}\u2065\u009b2J\ufe0f'
    const audit = open()
    call(audit, sly)
    await audit.close()
    expect(hasHidden(readFileSync(onlyPath(), 'utf8'))).toBe(false)
    expect(read().entries).toMatchObject([{ tool: sly }])
    expect(states()).toEqual(['intact'])
  })

  it('has a call on disk before it is made, and shows it as running', () => {
    const audit = open()
    audit.begin({ caller, server: 's', tool: 't', args: {} })
    expect(read().entries).toMatchObject([{ tool: 't', outcome: 'running' }])
    expect(states()).toEqual(['running'])
  })

  it('tells waiting for a person from running, and their time from that of the tool', async () => {
    const audit = open()
    const end = audit.begin({ caller, server: 's', tool: 't', args: {} })
    end.runs()
    end.waits()
    await expect.poll(() => read().entries[0]?.outcome).toBe('waiting')
    const asked = Date.now()
    while (Date.now() < asked + 2) await new Promise((resolve) => setTimeout(resolve, 1))
    end.runs()
    await expect.poll(() => read().entries[0]?.outcome).toBe('running')
    end({ outcome: 'ok' })
    await audit.close()
    const [entry] = read().entries
    expect(entry?.waitedMs).toBeGreaterThan(0)
    const whole = linesOf(onlyPath())
      .map((line) => JSON.parse(line))
      .find(({ kind }) => kind === 'end').ms
    expect(entry?.ms).toBe(Math.max(0, whole - Number(entry?.waitedMs)))
    expect(states()).toEqual(['intact'])
  })

  it('says that a call was not made if its process ended while a person was asked', async () => {
    const audit = open()
    audit.begin({ caller, server: 's', tool: 't', args: {} }).waits()
    await audit.close()
    expect(read().entries).toMatchObject([{ outcome: 'cancelled' }])
  })

  it('is read for a period', async () => {
    const audit = open()
    call(audit)
    await audit.close()
    const at = Date.parse(read().entries[0]?.at ?? '')
    expect([read({ since: at, until: at + 1 }), read({ until: at })].map(({ entries }) => entries.length)).toEqual([
      1, 0
    ])
  })

  // Checked: if nothing is redacted, the secret is in the file.
  it('contains no secret, wherever it occurs', async () => {
    const secrets = new KnownSecrets()
    secrets.add(['p"ss\nword', 'sk-12345', 'sk-12345-long'])
    const audit = open({ secrets, withArguments: true })
    call(audit, 'tool-sk-12345', { key: 'sk-12345-long', deep: [{ other: 'p"ss\nword' }] })
    const request = 'use sk-12345 and p"ss\nword'
    audit.decided({ caller, by: 'find_tool', request, candidates: [], outcome: 'abstained', ms: 1 })
    await audit.close()
    const text = paths()
      .map((path) => readFileSync(path, 'utf8'))
      .join('')
    expect(text).not.toMatch(/sk-12345|ss\\+nword/)
    expect(read().entries.find(({ kind }) => kind === 'call')?.arguments).toBe(
      '{"deep":[{"other":"[secret]"}],"key":"[secret]"}'
    )
  })

  it('continues in the next file and finds calls across the boundary', async () => {
    const audit = open({ maxFileBytes: 2000 })
    const end = audit.begin({ caller, server: 's', tool: 'long', args: {} })
    for (let i = 0; i < 40; i++) call(audit, `t${i}`)
    end({ outcome: 'failed', code: 'child_refused' })
    await audit.close()
    expect(paths().length).toBeGreaterThan(5)
    const { entries } = read()
    expect(entries.map(({ tool }) => tool)).toEqual([...Array.from({ length: 40 }, (_, i) => `t${39 - i}`), 'long'])
    expect(entries.at(-1)).toMatchObject({ outcome: 'failed', code: 'child_refused' })
    expect(states()).toEqual(['intact'])
  })

  // Checked: if the clock is always trusted, the first row of the next process removes everything.
  it('removes nothing for its age when the clock has just jumped, and what is too old a day later', async () => {
    const days = (count: number) => Date.now() / 1000 - count * 86_400
    const write = async (writtenAt?: number) => {
      const audit = open({ maxAgeMs: 30 * 86_400_000 })
      call(audit)
      await audit.close()
      const path = paths().find((one) => statSync(one).mtimeMs > Date.now() - 60_000)
      if (path && writtenAt) utimesSync(path, writtenAt, writtenAt)
    }
    await write(days(700))
    await write(days(690))
    await write(days(2))
    expect(paths()).toHaveLength(3)
    await write()
    expect(paths()).toHaveLength(2)
    expect(verifyAudit([folder()]).flatMap(({ problems }) => problems)).toEqual([])
  })

  it('removes the oldest files, records that in the chain, and still verifies', async () => {
    const old = open({ maxFileBytes: 2000 })
    for (let i = 0; i < 20; i++) call(old)
    await old.close()
    const audit = open({ maxFileBytes: 2000, maxBytes: 12_000 })
    for (let i = 0; i < 100; i++) call(audit)
    await audit.close()
    const bytes = listAuditFiles([folder()]).reduce((sum, file) => sum + file.bytes, 0)
    expect(bytes).toBeLessThan(16_000)
    expect(verifyAudit([folder()]).flatMap(({ problems }) => problems)).toEqual([])
  })

  it('stays intact and continues if an old file can not be removed', async () => {
    const old = new Date(Date.now() - 2e9)
    const stranger = join(folder(), '0123456789abcdef-000001.jsonl')
    mkdirSync(stranger, { recursive: true })
    utimesSync(stranger, old, old)
    const audit = open()
    call(audit)
    call(audit)
    await audit.close()
    expect(read().entries).toHaveLength(2)
    expect(states()).toEqual(['intact'])
  })

  it('records files that another process removes meanwhile, and keeps files that it can not read', async () => {
    const audit = open()
    call(audit)
    await audit.close()
    const [there] = listAuditFiles([folder()])
    if (!there) throw new Error('no file')
    const gone = { ...there, path: join(folder(), 'gone') }
    const unreadable = { ...there, path: folder() }
    const words = removalRecords([gone, there, unreadable], [gone, there, unreadable])
    expect(words).toMatchObject({ files: [there], heads: [{ chain: there.chain, seq: 3 }] })
  })

  it('pages through the rows of several processes without repeats or omissions', async () => {
    const logs = [open(), open(), open()]
    for (let i = 0; i < 30; i++) call(logs[i % 3] ?? open(), `t${i}`)
    // We saw this once: file times lag behind the times in the rows while the kernel is busy.
    const behind = new Date(Date.now() - 100)
    utimesSync(onlyPath(), behind, behind)
    const seen: string[] = []
    let before: string | null | undefined
    do {
      const page = read({ limit: 7, ...(before ? { before } : {}) })
      seen.push(...page.entries.map(({ id }) => id))
      before = page.next
    } while (before !== null)
    expect(seen).toHaveLength(30)
    expect(seen).toEqual([...new Set(seen)].sort().reverse())
    expect(read({ tool: 't7' }).entries).toHaveLength(1)
    expect(read({ outcome: 'failed' }).entries).toEqual([])
    await Promise.all(logs.map((log) => log.close()))
  })
})

/** Runs in a process with a limit on file size: the kernel then accepts only a part of a write, like a full disk. */
async function withLimitedFiles(blocks: number, calls: number): Promise<string[]> {
  const script = `
    import { openAudit } from ${JSON.stringify(join(import.meta.dirname, 'audit.ts'))}
    import { KnownSecrets } from ${JSON.stringify(join(import.meta.dirname, '../lib/known-secrets.ts'))}
    const usual = { version: '1', maxBytes: 1e8, maxRouteBytes: 1e8, maxAgeMs: 1e9, secrets: new KnownSecrets(), withArguments: false }
    const audit = openAudit({ dir: process.argv[1], ...usual })
    const codes = []
    for (let i = 0; i < ${calls}; i++) {
      try {
        audit.begin({ caller: { owner: 'local', door: 'stdio' }, server: 's', tool: 't' + i, args: {} })({ outcome: 'ok' })
        codes.push('ok')
      } catch ({ code }) { codes.push(code) }
    }
    console.log(JSON.stringify([...codes, String(audit.problem)]))
  `
  const run = `trap '' XFSZ; ulimit -f ${blocks}; exec "$0" --input-type=module -e "$1" "$2"`
  const { stdout } = await promisify(execFile)('sh', ['-c', run, process.execPath, script, folder()])
  return JSON.parse(stdout)
}

describe('an audit log that can not be written', () => {
  it('refuses calls, says why, and records the gap afterwards', async () => {
    const blocker = join(dir, 'audit')
    writeFileSync(blocker, 'a file where the folder should be')
    const audit = open()
    expect(() => call(audit)).toThrow(expect.objectContaining({ code: 'audit_unavailable' }))
    expect(() => call(audit)).toThrow(/Can't write the audit log in .* \(E\w+\)/)
    expect(audit.problem).toMatch(/E(EXIST|NOTDIR)/)
    rmSync(blocker)
    call(audit, 'after')
    expect(audit.problem).toBeUndefined()
    await audit.close()
    expect(read().entries.map(({ tool }) => tool)).toEqual(['after'])
    expect(linesOf(onlyPath()).find((line) => line.includes('"gap"'))).toMatch(/"refused":2/)
    expect(states()).toEqual(['intact'])
  })

  it('leaves no half row on a full disk, and refuses calls from then on', async () => {
    const codes = await withLimitedFiles(16, 100)
    expect([codes[0], codes.at(-2), codes.at(-1)]).toEqual([
      'ok',
      'audit_unavailable',
      expect.stringMatching(/ENOSPC|EFBIG/)
    ])
    expect(readFileSync(onlyPath(), 'utf8')).toMatch(/\}\n$/)
    expect(states()).toEqual(['unclosed'])
  })

  it('stays intact if there is no room to record a removal', async () => {
    // Their last rows are larger than the limit for a file.
    mkdirSync(folder())
    for (let i = 0; i < 1000; i++) {
      const chain = String(i).padStart(16, '0')
      const { line } = sealRow(
        { chain, seq: 0, at: new Date().toISOString(), prev: FIRST_PREV },
        { kind: 'stop', unfinished: 0 }
      )
      const path = join(folder(), auditFileName(chain, 1))
      writeFileSync(path, `${line}\n`)
      // All are too old, except one, so that the clock is trusted.
      const at = i === 0 ? Date.now() / 1000 - 2 * 86_400 : 1
      utimesSync(path, at, at)
    }
    const codes = await withLimitedFiles(64, 3)
    expect(codes.slice(0, 3)).toEqual(['ok', 'ok', 'ok'])
    const own = verifyAudit([folder()]).filter(({ chain }) => !chain.startsWith('000'))
    expect(own).toMatchObject([{ state: 'unclosed', problems: [] }])
  })

  it('notices that its file was removed, as does verify', async () => {
    const audit = open()
    call(audit, 'lost')
    rmSync(onlyPath())
    const filesAfterCall = () => {
      call(audit)
      return paths().length
    }
    await expect.poll(filesAfterCall, { interval: 100 }).toBe(1)
    await audit.close()
    expect(states()).toEqual(['broken'])
  })
})

describe('verify', () => {
  /** An older chain, and the next one, which recorded its end. */
  async function twoChains(): Promise<{ path: string; lines: string[] }[]> {
    rmSync(folder(), { recursive: true, force: true })
    for (const name of ['one', 'two']) {
      const audit = open()
      for (let i = 0; i < 4; i++) call(audit, `${name}${i}`, { i })
      await audit.close()
    }
    expect(states()).toEqual(['intact', 'intact'])
    // Sorted by content, because with coarse file times both may have the same time.
    const files = listAuditFiles([folder()]).map(({ path }) => ({ path, lines: linesOf(path) }))
    return files.sort((a, b) => Number(a.lines.join().includes('two0')) - Number(b.lines.join().includes('two0')))
  }

  // Checked: if the hash is not checked, the edited row is not found.
  it('finds any row that was edited, removed, duplicated or moved', async () => {
    const files = await twoChains()
    const isSound = () => states().every((state) => state === 'intact') && states().length === 2
    fc.assert(
      fc.property(
        fc.nat(1),
        fc.nat(100),
        fc.nat(10_000),
        fc.constantFrom('edit', 'delete', 'swap', 'double', 'cut', 'truncate', 'unlink', 'reseal'),
        (which, row, place, deed) => {
          const { path, lines } = files[which] ?? { path: '', lines: [] }
          const at = row % lines.length
          const changed = tamper(lines, at, place, deed)
          if (changed === undefined) rmSync(path)
          else writeFileSync(path, changed)
          const found = !isSound()
          const whole = `${lines.join('\n')}\n`
          writeFileSync(path, whole)
          chmodSync(path, 0o600)
          // No other chain records the last chain: without its file there is no trace of it, and its last row can be forged.
          const isLast = which === 1 && (changed === undefined || (deed === 'reseal' && at === lines.length - 1))
          const isInvisible = changed === whole || isLast
          return found || isInvisible
        }
      ),
      { numRuns: 300 }
    )
    expect(isSound()).toBe(true)
  })

  function tamper(lines: string[], at: number, place: number, deed: string): string | undefined {
    const rows = [...lines]
    const row = String(rows[at])
    const other = place % rows.length
    if (deed === 'edit') {
      const spot = place % row.length
      rows[at] = row.slice(0, spot) + (row[spot] === '7' ? '8' : '7') + row.slice(spot + 1)
    } else if (deed === 'delete') rows.splice(at, 1)
    else if (deed === 'swap') [rows[at], rows[other]] = [String(rows[other]), row]
    else if (deed === 'double') rows.splice(other, 0, row)
    else if (deed === 'reseal') {
      const text = row.replace(/"at":"..../, '"at":"1999').replace(/,"hash":"[0-9a-f]+"\}$/, '}')
      rows[at] = `${text.slice(0, -1)},"hash":"${createHash('sha256').update(text).digest('hex')}"}`
    } else if (deed === 'cut') return rows.join('\n').slice(0, -1 - (place % 200))
    else if (deed === 'truncate') rows.length = at
    else return undefined
    return `${rows.join('\n')}\n`
  }

  it('says where the problem is', async () => {
    const [first] = await twoChains()
    if (!first) throw new Error('no file')
    writeFileSync(first.path, `${first.lines.toSpliced(3, 1).join('\n')}\n`)
    const broken = verifyAudit([folder()]).find(({ state }) => state === 'broken')
    expect(broken?.problems).toMatchObject([{ line: 4, reason: 'rows 3 to 3 are missing before this one' }])
  })
})
