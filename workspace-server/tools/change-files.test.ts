import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, it } from 'vitest'
import { FakeOwner } from '../fake-owner.ts'
import type { FileChange, FileChangeResult } from '../protocol.ts'

const owner = await FakeOwner.start()
afterAll(() => owner.stop())

const at = (...parts: string[]) => join(owner.root, ...parts)
beforeEach(() => {
  for (const name of readdirSync(owner.root)) rmSync(at(name), { recursive: true, force: true })
  mkdirSync(at('folder/inner'), { recursive: true })
  writeFileSync(at('folder/precious.txt'), 'precious')
  symlinkSync('folder', at('link'))
  symlinkSync('/etc', at('out'))
})

const change = (what: FileChange) => owner.result<FileChangeResult>('workspace/change', what)
const base64 = (text: string) => Buffer.from(text).toString('base64')
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

it('deletes and moves a link itself, not what it leads to', async () => {
  expect(await change({ kind: 'move', path: 'link', to: 'moved' })).toEqual({})
  expect(lstatSync(at('moved')).isSymbolicLink()).toBe(true)
  expect(await change({ kind: 'delete', path: 'moved' })).toEqual({})
  expect(readFileSync(at('folder/precious.txt'), 'utf8')).toBe('precious')
})

it.each<FileChange>([
  { kind: 'delete', path: '.' },
  { kind: 'delete', path: 'folder/..' },
  { kind: 'delete', path: '../x' },
  { kind: 'delete', path: 'out/passwd' },
  { kind: 'delete', path: 'missing' },
  { kind: 'folder', path: 'out/x' },
  { kind: 'move', path: 'folder/precious.txt', to: 'out/x' },
  { kind: 'move', path: 'folder', to: 'folder/inner/folder' },
  { kind: 'move', path: 'missing', to: 'x' },
  { kind: 'write', path: 'out/x', data: base64('x'), expected: null },
  { kind: 'write', path: '../x', data: base64('x'), expected: null }
])('refuses %j', async (what) => {
  expect(await change(what)).toMatchObject({ problem: { code: 'file_refused' } })
  expect(existsSync('/etc/passwd')).toBe(true)
  expect(readFileSync(at('folder/precious.txt'), 'utf8')).toBe('precious')
})

it.each<FileChange>([
  { kind: 'folder', path: 'folder/precious.txt' },
  { kind: 'move', path: 'link', to: 'folder/precious.txt' },
  { kind: 'move', path: 'folder/inner', to: 'link' },
  { kind: 'write', path: 'folder/precious.txt', data: base64('x'), expected: null },
  { kind: 'write', path: 'link', data: base64('x'), expected: null }
])('replaces nothing: %j', async (what) => {
  expect(await change(what)).toMatchObject({ problem: { code: 'file_exists' } })
  expect(readFileSync(at('folder/precious.txt'), 'utf8')).toBe('precious')
})

it('writes over a file only if it is as the person saw it', async () => {
  const path = 'link/precious.txt'
  const write = (text: string, expected: string) => change({ kind: 'write', path, data: base64(text), expected })
  expect(await write('new', sha256('other'))).toMatchObject({ problem: { code: 'file_changed' } })
  expect(await write('new', sha256('precious'))).toEqual({})
  expect(readFileSync(at('folder/precious.txt'), 'utf8')).toBe('new')
})
