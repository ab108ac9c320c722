import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FakeOwner } from '../fake-owner.ts'

let owner: FakeOwner
const at = (...parts: string[]) => join(owner.root, ...parts)
const refusal = async (name: string, args: object) => {
  const { isError, content } = await owner.call(name, args)
  expect(isError).toBe(true)
  return content[0]?.text ?? ''
}

beforeAll(async () => {
  owner = await FakeOwner.start()
})
afterAll(() => owner.stop())

describe('bad arguments', () => {
  it.each([
    ['read_file', {}, '"path" is missing'],
    ['read_file', { path: 7 }, '"path" must be a string'],
    ['read_file', { path: '' }, '"path" must not be empty'],
    ['read_file', { path: 'a\0b' }, '"path" must not contain NUL'],
    ['read_file', { path: 'x'.repeat(5000) }, '"path" has 5000 characters'],
    ['read_file', { path: 'x'.repeat(300) }, 'too long'],
    ['read_file', { path: 'x', offset: -1 }, '"offset" must be a whole number'],
    ['read_file', { path: 'x', limit: 1.5 }, '"limit" must be a whole number'],
    ['read_file', { path: 'x', encoding: 'latin1' }, '"encoding" must be one of'],
    ['read_file', { path: 'x', extra: 1 }, 'no argument "extra"'],
    ['read_file', { path: 'missing' }, 'does not exist'],
    ['read_file', { path: 'missing/below' }, 'does not exist'],
    ['write_file', { path: 'x' }, '"content" is missing'],
    ['write_file', { path: 'x', content: null }, '"content" must be a string'],
    ['write_file', { path: 'x', content: 'ä', encoding: 'base64' }, 'not valid base64'],
    ['write_file', { path: 'x', content: '', append: 'yes' }, '"append" must be true or false'],
    ['write_file', { path: 'x/', content: '' }, 'names a folder'],
    ['write_file', { path: '.', content: '' }, 'not a regular file'],
    ['list_files', { maxEntries: 0 }, '"maxEntries" must be'],
    ['list_files', { path: 'missing' }, 'does not exist'],
    ['execute_command', {}, '"command" is missing'],
    ['execute_command', { command: ' ' }, '"command" must not be empty'],
    ['execute_command', { command: 'echo \0' }, 'NUL'],
    ['execute_command', { command: 'x'.repeat(50_000) }, '"command" has 50000 characters'],
    ['execute_command', { command: 'true', timeoutSeconds: 0 }, '"timeoutSeconds" must be'],
    ['execute_command', { command: 'true', timeoutSeconds: '5' }, '"timeoutSeconds" must be'],
    ['execute_command', { command: 'true', cwd: 'missing' }, 'does not exist']
  ])('%s %o', async (name, args, sentence) => {
    expect(await refusal(name, args)).toContain(sentence)
  })
})

describe('confinement', () => {
  // Checked: if any path is accepted, the file is read.
  it.each(['../outside', '/etc/passwd', 'a/../../outside', '..', '/'])('refuses %s', async (path) => {
    expect(await refusal('read_file', { path })).toContain('outside the workspace')
    expect(await refusal('write_file', { path, content: 'x' })).toContain('outside the workspace')
    expect(await refusal('list_files', { path })).toContain('outside the workspace')
    expect(await refusal('execute_command', { command: 'true', cwd: path })).toContain('outside the workspace')
  })

  // Checked: if links are not checked, the file behind the link is read.
  it('refuses symbolic links that lead out, anywhere in the path', async () => {
    mkdirSync(at('links/deep'), { recursive: true })
    mkdirSync(join(owner.folder, 'rootless'))
    writeFileSync(join(owner.folder, 'rootless/secret'), 'secret')
    symlinkSync(join(owner.folder, 'rootless'), at('links/deep/out'))
    symlinkSync('../../../rootless/secret', at('links/deep/file'))
    symlinkSync(join(owner.folder, 'rootless/new'), at('links/deep/dangling'))
    for (const path of ['links/deep/out/secret', 'links/deep/file', 'links/deep/out/new'])
      expect(await refusal('read_file', { path })).toContain('outside')
    for (const path of ['links/deep/out/new', 'links/deep/out/a/b', 'links/deep/file'])
      expect(await refusal('write_file', { path, content: 'x' })).toContain('outside')
    expect(await refusal('write_file', { path: 'links/deep/dangling', content: 'x' })).toContain('symbolic link')
    expect(await refusal('list_files', { path: 'links/deep/out' })).toContain('outside')
    expect(readdirSync(join(owner.folder, 'rootless'))).toEqual(['secret'])
    expect(readFileSync(join(owner.folder, 'rootless/secret'), 'utf8')).toBe('secret')
  })

  it('accepts absolute paths and links inside the workspace', async () => {
    writeFileSync(at('inside'), 'yes')
    symlinkSync('inside', at('to-inside'))
    for (const path of [at('inside'), 'to-inside', './x/../inside'])
      expect((await owner.call('read_file', { path })).structuredContent.content).toBe('yes')
    await owner.call('write_file', { path: 'to-inside', content: 'new' })
    expect(readFileSync(at('inside'), 'utf8')).toBe('new')
  })

  it('does not block on a pipe, nor replace one', async () => {
    execFileSync('mkfifo', [at('pipe')])
    expect(await refusal('read_file', { path: 'pipe' })).toContain('not a regular file')
    expect(await refusal('write_file', { path: 'pipe', content: 'x' })).toContain('not a regular file')
    expect(await refusal('read_file', { path: 'links' })).toContain('is a folder')
  })
})

describe('read_file', () => {
  const read = async (args: object) => (await owner.call('read_file', args)).structuredContent

  it('reads lines', async () => {
    writeFileSync(at('lines'), 'one\ntwo\nthree\nfour')
    expect(await read({ path: 'lines' })).toMatchObject({ count: 4, totalLines: 4, truncated: false, size: 18 })
    expect(await read({ path: 'lines', offset: 2, limit: 2 })).toMatchObject({
      content: 'two\nthree\n',
      offset: 2,
      count: 2,
      totalLines: 4,
      truncated: true
    })
    expect(await read({ path: 'lines', offset: 4 })).toMatchObject({ content: 'four', truncated: false })
    expect(await refusal('read_file', { path: 'lines', offset: 5 })).toContain('has only 4 lines')
  })

  it('cuts long text between lines and says where to continue', async () => {
    const line = `${'é'.repeat(500)}\n`
    writeFileSync(at('long'), line.repeat(1000))
    const first = await read({ path: 'long' })
    expect(first).toMatchObject({ encoding: 'utf8', truncated: true, totalLines: 1000 })
    expect(first.content).toBe(line.repeat(Number(first.count)))
    let all = String(first.content)
    for (let next = 1 + Number(first.count); next <= 1000; ) {
      const part = await read({ path: 'long', offset: next })
      all += part.content
      next += Number(part.count)
    }
    expect(all).toBe(line.repeat(1000))
  })

  it('cuts one endless line between characters', async () => {
    writeFileSync(at('endless'), `x${'€'.repeat(200_000)}`)
    const part = await read({ path: 'endless' })
    expect(part).toMatchObject({ encoding: 'utf8', count: 1, truncated: true, totalLines: 1 })
    expect(part.content).toMatch(/^x€+$/)
  })

  it('returns binary as base64, in parts, and images and PDFs as such', async () => {
    const bytes = Buffer.from(Array.from({ length: 3000 }, (_, index) => index % 256))
    writeFileSync(at('binary'), bytes)
    expect(await read({ path: 'binary' })).toMatchObject({ encoding: 'base64', content: bytes.toString('base64') })
    expect(await read({ path: 'binary', offset: 1000, limit: 10 })).toMatchObject({
      content: bytes.subarray(1000, 1010).toString('base64'),
      truncated: true
    })
    expect(await refusal('read_file', { path: 'binary', offset: 4000 })).toContain('only 3000 bytes')
    const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), bytes])
    writeFileSync(at('picture'), png)
    const { content } = await owner.call('read_file', { path: 'picture' })
    expect(content).toEqual([{ type: 'image', mimeType: 'image/png', data: png.toString('base64') }])
    const pdf = Buffer.concat([Buffer.from('%PDF-1.7\n'), bytes])
    writeFileSync(at('a paper'), pdf)
    const paper = await owner.call('read_file', { path: 'a paper' })
    const resource = {
      uri: 'file:///workspace/a%20paper',
      mimeType: 'application/pdf',
      blob: pdf.toString('base64')
    }
    expect(paper.content).toEqual([{ type: 'resource', resource }])
    expect(paper.structuredContent).toMatchObject({ encoding: 'pdf', mimeType: 'application/pdf' })
    expect(await read({ path: 'a paper', encoding: 'base64' })).toMatchObject({ content: pdf.toString('base64') })
  })

  it('treats text with one invalid byte as binary, unless told otherwise', async () => {
    writeFileSync(at('mixed'), Buffer.concat([Buffer.from('a\n'.repeat(10_000)), Buffer.from([0xff])]))
    expect(await read({ path: 'mixed' })).toMatchObject({ encoding: 'base64' })
    expect(await read({ path: 'mixed', encoding: 'utf8', offset: 10_001 })).toMatchObject({ content: '\ufffd' })
  })

  it('reads the end of a huge sparse file without loading it', async () => {
    execFileSync('truncate', ['-s', '3G', at('huge')])
    const part = await read({ path: 'huge', offset: 3 * 2 ** 30 - 5, limit: 100 })
    expect(part).toMatchObject({ encoding: 'base64', count: 5, truncated: false })
  })

  it('reads an empty file', async () => {
    writeFileSync(at('empty'), '')
    expect(await read({ path: 'empty' })).toMatchObject({ content: '', count: 0, totalLines: 0, truncated: false })
  })
})

describe('write_file', () => {
  it('says what it replaced, so that the record can show what changed', async () => {
    const replaced = async (args: object) =>
      (await owner.call('write_file', { path: 'kept', ...args })).structuredContent?.replaced
    expect(await replaced({ content: 'one\ntwo\nthree\n' })).toEqual({ is: 'nothing' })
    expect(await replaced({ content: 'one\n2\nthree\n' })).toEqual({ is: 'text', head: 4, tail: 6, text: 'two\n' })
    expect(await replaced({ content: 'more', append: true })).toBeUndefined()
    expect(await replaced({ content: 'AAEC', encoding: 'base64' })).toBeUndefined()
    expect(await replaced({ content: 'text' })).toEqual({ is: 'binary', bytes: 3 })
    writeFileSync(at('kept'), '\u0001'.repeat(60_000))
    expect(await replaced({ content: 'text' })).toEqual({ is: 'large', bytes: 60_000 })
  })

  it('makes folders, replaces, appends and keeps the mode', async () => {
    const write = (args: object) => owner.call('write_file', { path: 'new/deep/file', ...args })
    const said = async (args: object) => JSON.stringify((await write(args)).content)
    expect(await said({ content: '!', path: 'one' })).toContain('Created one: 1 byte written, 1 in all.')
    expect(await said({ content: 'ab', path: 'one' })).toContain('Wrote one: 2 bytes written, 2 in all.')
    expect((await write({ content: 'é' })).structuredContent).toMatchObject({ created: true, bytesWritten: 2, size: 2 })
    chmodSync(at('new/deep/file'), 0o640)
    expect((await write({ content: 'two' })).structuredContent).toMatchObject({ created: false, size: 3 })
    expect(statSync(at('new/deep/file')).mode & 0o777).toBe(0o640)
    expect((await write({ content: '!', append: true })).structuredContent).toMatchObject({ size: 4 })
    expect(readFileSync(at('new/deep/file'), 'utf8')).toBe('two!')
    await write({ content: 'AAEC', encoding: 'base64', executable: true })
    expect([...readFileSync(at('new/deep/file'))]).toEqual([0, 1, 2])
    expect(statSync(at('new/deep/file')).mode & 0o777).toBe(0o751)
    expect(readdirSync(at('new/deep'))).toEqual(['file'])
  })

  it('replaces a hard link without touching the other name', async () => {
    writeFileSync(at('first'), 'old')
    linkSync(at('first'), at('second'))
    await owner.call('write_file', { path: 'first', content: 'new' })
    expect(readFileSync(at('second'), 'utf8')).toBe('old')
  })

  it('leaves nothing behind when it fails', async () => {
    mkdirSync(at('fails'))
    writeFileSync(at('fails/file'), 'x')
    expect(await refusal('write_file', { path: 'fails/file/below', content: 'x' })).toContain('not a folder')
    expect(readdirSync(at('fails'))).toEqual(['file'])
  })
})

describe('list_files', () => {
  it('lists sorted, bounded, without following links', async () => {
    mkdirSync(at('tree/b/c'), { recursive: true })
    writeFileSync(at('tree/a'), '12345')
    writeFileSync(at('tree/b/c/d'), '')
    utimesSync(at('tree/a'), 1, 1_700_000_000)
    utimesSync(at('tree/b/c/d'), 1, 1_700_000_000.0009)
    symlinkSync('..', at('tree/up'))
    const list = async (args: object) => (await owner.call('list_files', { path: 'tree', ...args })).structuredContent
    expect(await list({ recursive: true })).toEqual({
      path: 'tree',
      entries: [
        { path: 'tree/a', type: 'file', size: 5, mtimeMs: 1_700_000_000_000 },
        { path: 'tree/b', type: 'directory', size: 0 },
        { path: 'tree/b/c', type: 'directory', size: 0 },
        { path: 'tree/b/c/d', type: 'file', size: 0, mtimeMs: 1_700_000_000_001 },
        { path: 'tree/up', type: 'symlink', size: 2, target: '..' }
      ],
      truncated: false
    })
    expect(await list({})).toMatchObject({ entries: [{ path: 'tree/a' }, { path: 'tree/b' }, { path: 'tree/up' }] })
    expect(await list({ recursive: true, maxEntries: 2 })).toMatchObject({ truncated: true, entries: { length: 2 } })
    expect(await list({ recursive: true, maxEntries: 5 })).toMatchObject({ truncated: false })
    expect(await refusal('list_files', { path: 'tree/a' })).toContain('not a folder')
  })

  it('stays within a message for very long paths', async () => {
    const script =
      'd=deep; mkdir $d; for i in $(seq 14); do d=$d/$(printf "%0200d" $i); mkdir $d; done; cd $d && touch {1..3000}'
    await owner.run(script)
    const { structuredContent } = await owner.call('list_files', { path: 'deep', recursive: true, maxEntries: 10_000 })
    expect(structuredContent.truncated).toBe(true)
    expect(existsSync(at('deep'))).toBe(true)
  })
})
