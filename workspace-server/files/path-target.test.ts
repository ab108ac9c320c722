import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { PATIENCE_MS } from '../../tests/support/patience-ms.ts'
import { FakeOwner } from '../fake-owner.ts'
import { type ExpectedTarget, type PathTarget, TARGET_META } from '../protocol.ts'

const owner = await FakeOwner.start()
afterAll(() => owner.stop())

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const PRECIOUS = sha256('precious')
const at = (...parts: string[]) => join(owner.root, ...parts)
beforeEach(() => {
  for (const name of readdirSync(owner.root)) rmSync(at(name), { recursive: true, force: true })
  writeFileSync(at('precious.txt'), 'precious')
  mkdirSync(at('folder'))
  symlinkSync('folder', at('link'))
  symlinkSync('precious.txt', at('alias'))
})

async function resolve(...paths: string[]): Promise<PathTarget[]> {
  return (await owner.result<{ targets: PathTarget[] }>('workspace/resolve', { paths })).targets
}

/** The answer to a call for which a person has seen this target. */
async function callExpecting(name: string, args: object, expected: ExpectedTarget) {
  const { result, error } = await owner.request('tools/call', {
    name,
    arguments: args,
    _meta: { [TARGET_META]: expected }
  })
  return { result: result as { isError?: boolean; content: { text: string }[] }, error }
}

describe('where a path leads', () => {
  it.each([
    ['new.txt', { path: 'new.txt', is: 'new' }],
    ['deep/er/new.txt', { path: 'deep/er/new.txt', is: 'new' }],
    ['precious.txt', { path: 'precious.txt', is: 'file', bytes: 8, hash: PRECIOUS }],
    ['../root/precious.txt', { path: 'precious.txt', is: 'file', bytes: 8, hash: PRECIOUS }],
    ['folder/../precious.txt', { path: 'precious.txt', is: 'file', bytes: 8, hash: PRECIOUS }],
    ['alias', { path: 'precious.txt', is: 'file', bytes: 8, hash: PRECIOUS, throughLink: true }],
    ['link/new.txt', { path: 'folder/new.txt', is: 'new', throughLink: true }],
    ['folder', { path: 'folder', is: 'folder' }],
    ['link', { path: 'folder', is: 'folder', throughLink: true }]
  ] as const)('%s', async (named, { path, ...rest }) => {
    expect(await resolve(named)).toEqual([{ path: at(path), ...rest }])
  })

  it('is reported for absolute paths with several slashes, and for unusable ones', async () => {
    symlinkSync('/etc', at('out'))
    symlinkSync('nowhere', at('dangling'))
    const targets = await resolve(`/${at('precious.txt')}`, '/etc/passwd', '../x', 'out/passwd', 'dangling', 'a\0b', '')
    expect(targets[0]).toEqual({ path: at('precious.txt'), is: 'file', bytes: 8, hash: PRECIOUS })
    for (const target of targets.slice(1))
      expect(target).toEqual({ path: null, is: 'unusable', problem: expect.any(String) })
    expect((await owner.request('workspace/resolve', { paths: Array(101).fill('x') })).error?.message).toContain('100')
  })
})

describe('a call that was approved for one target', () => {
  it('runs while the path leads there', async () => {
    const written = await callExpecting(
      'write_file',
      { path: 'link/new.txt', content: 'x' },
      { path: at('folder/new.txt'), is: 'new' }
    )
    expect(written.result.isError).toBeUndefined()
    expect(readFileSync(at('folder/new.txt'), 'utf8')).toBe('x')
    const append = { path: 'alias', content: '!', append: true }
    await callExpecting('write_file', append, { path: at('precious.txt'), is: 'file' })
    expect(readFileSync(at('precious.txt'), 'utf8')).toBe('precious!')
    await callExpecting('write_file', { path: 'alias', content: 'new' }, { path: at('precious.txt'), is: 'file' })
    expect(readFileSync(at('precious.txt'), 'utf8')).toBe('new')
    const refused = await callExpecting('write_file', { path: '/etc/x', content: '' }, { path: null, is: 'unusable' })
    expect(refused.result.content[0]?.text).toContain('outside the workspace')
  })

  // Checked: if the approved target is not compared, precious.txt is overwritten.
  it.each([
    ['a link was put in its place', 'write_file', { path: 'new.txt', content: 'x' }, { path: 'new.txt', is: 'new' }],
    ['a file is there now', 'write_file', { path: 'later.txt', content: 'x' }, { path: 'later.txt', is: 'new' }],
    [
      'its folder leads elsewhere',
      'write_file',
      { path: 'dir/precious.txt', content: 'x' },
      { path: 'dir/precious.txt' }
    ],
    [
      'an append would go elsewhere',
      'write_file',
      { path: 'new.txt', content: 'x', append: true },
      { path: 'new.txt' }
    ],
    ['another file would be read', 'read_file', { path: 'new.txt' }, { path: 'new.txt' }],
    ['another folder would be listed', 'list_files', { path: 'dir' }, { path: 'dir' }],
    ['a command would run elsewhere', 'execute_command', { command: 'touch x', cwd: 'dir' }, { path: 'dir' }]
  ] as const)('does nothing when %s', async (_when, name, args, expected) => {
    symlinkSync('precious.txt', at('new.txt'))
    symlinkSync('.', at('dir'))
    writeFileSync(at('later.txt'), 'later')
    const before = readdirSync(owner.root)
    const { error } = await callExpecting(name, args, { ...expected, path: at(expected.path) })
    expect(error?.data).toMatchObject({ code: 'target_changed', target: { is: expect.stringMatching(/file|folder/) } })
    expect(readFileSync(at('precious.txt'), 'utf8')).toBe('precious')
    expect(readFileSync(at('later.txt'), 'utf8')).toBe('later')
    expect(readdirSync(owner.root)).toEqual(before)
  })

  // Checked: if the content is not compared, precious.txt is overwritten.
  it('replaces no other content than the approved one', async () => {
    const shown = { path: at('precious.txt'), is: 'file', hash: PRECIOUS } as const
    const write = (content: string) => callExpecting('write_file', { path: 'alias', content }, shown)
    writeFileSync(at('precious.txt'), 'treasure')
    const { error } = await write('x')
    const target = { path: at('precious.txt'), is: 'file', bytes: 8, hash: sha256('treasure'), throughLink: true }
    expect(error?.data).toEqual({ code: 'target_changed', target })
    expect(readFileSync(at('precious.txt'), 'utf8')).toBe('treasure')
    expect(readdirSync(owner.root)).toHaveLength(4)
    writeFileSync(at('precious.txt'), Buffer.alloc(1024 * 1024 + 1))
    expect((await write('x')).error?.data).toMatchObject({ code: 'target_changed' })
    expect(await resolve('precious.txt')).toEqual([{ path: at('precious.txt'), is: 'file', bytes: 1024 * 1024 + 1 }])
    writeFileSync(at('precious.txt'), 'precious')
    expect((await write('x')).error).toBeUndefined()
    expect(readFileSync(at('precious.txt'), 'utf8')).toBe('x')
  })

  // Checked: if they are created and renamed by path, some land elsewhere.
  it('never writes elsewhere, however fast a command swaps the folder', async () => {
    for (const name of ['other', 'sw']) mkdirSync(at(name))
    writeFileSync(at('sw/x'), 'x')
    symlinkSync('other', at('toOther'))
    const step = "mv('sw', 'dir'); mv('toOther', 'sw'); mv('sw', 'toOther'); mv('dir', 'sw')"
    const script = `const { renameSync: mv, existsSync, writeFileSync } = require('fs'); writeFileSync('go', ''); while (!existsSync('stop')) { ${step} }`
    const swapping = owner.call('execute_command', { command: `"${process.execPath}" -e "${script}"` })
    await vi.waitUntil(() => existsSync(at('go')), { timeout: PATIENCE_MS })
    const expected = { path: at('sw/x'), is: 'file' } as const
    const outcomes = new Set<string>()
    for (let round = 0; round < 3000 && (round < 300 || outcomes.size < 2); round++) {
      const { result, error } = await callExpecting('write_file', { path: 'sw/x', content: 'x' }, expected)
      outcomes.add(error ? (error.data?.code ?? error.message) : result.isError ? 'failed' : 'written')
    }
    writeFileSync(at('stop'), '')
    expect((await swapping).structuredContent).toMatchObject({ exitCode: 0 })
    expect(readdirSync(at('other'))).toEqual([])
    expect(outcomes).toEqual(new Set(['target_changed', 'written']))
  })
})
