import { spawnSync } from 'node:child_process'
import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { PATIENCE_MS } from '../../../tests/support/patience-ms.ts'
import { discard, temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { makeFolder } from './make-folder.ts'

const root = temporaryFolder()
afterAll(() => discard(root))

it('makes a folder with its parents, for its owner only, and says which one was the first', () => {
  expect(makeFolder(join(root, 'a/b/c'))).toBe(join(root, 'a'))
  expect(makeFolder(join(root, 'a/b/d'))).toBe(join(root, 'a/b/d'))
  expect(makeFolder(join(root, 'a/b'))).toBeUndefined()
  for (const each of ['a', 'a/b', 'a/b/c']) expect(statSync(join(root, each)).mode & 0o777).toBe(0o700)
  mkdirSync(join(root, 'target'))
  symlinkSync(join(root, 'target'), join(root, 'link'))
  expect(makeFolder(join(root, 'link'))).toBeUndefined()
  expect(makeFolder(join(root, 'link/x'))).toBe(join(root, 'link/x'))
  expect(makeFolder('/')).toBeUndefined()
})

it('says why it can not', () => {
  writeFileSync(join(root, 'file'), '')
  symlinkSync(join(root, 'nothing'), join(root, 'dangling'))
  expect(() => makeFolder(join(root, 'file'))).toThrow(/EEXIST/)
  expect(() => makeFolder(join(root, 'file/x'))).toThrow(/ENOTDIR/)
  expect(() => makeFolder(join(root, 'dangling'))).toThrow(/ENOENT/)
})

it.skipIf(process.platform !== 'linux')('gives up below /proc, where the mkdir of Node never returns', () => {
  // In a process of its own: a loop without an end would stop the tests.
  const code = `import(process.argv[1]).then(({ makeFolder }) => makeFolder('/proc/x/y')).catch(({ message }) => console.log(message))`
  const args = ['--disable-warning=ExperimentalWarning', '-e', code, join(import.meta.dirname, 'make-folder.ts')]
  const { stdout } = spawnSync(process.execPath, args, {
    timeout: PATIENCE_MS,
    killSignal: 'SIGKILL',
    encoding: 'utf8'
  })
  expect(stdout).toBe("ENOENT: no such file or directory, mkdir '/proc/x'\n")
})
