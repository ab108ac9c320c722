import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { editFile } from './edit-file.ts'
import { addServers } from './edit-registry.ts'
import { storeSecrets } from './store-secrets.ts'

let dir = ''
beforeEach(() => {
  dir = temporaryFolder()
})
afterEach(() => discard(dir))
const serversIn = (file: string) => Object.keys(JSON.parse(readFileSync(file, 'utf8')).mcpServers).sort()

describe('a file that is changed', () => {
  it('keeps all changes, even if several processes make them at once', async () => {
    const file = join(dir, 'mcp.json')
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const ends = names.map(async (name) => {
      const module = JSON.stringify(resolve(import.meta.dirname, 'edit-registry.ts'))
      const script = `(await import(${module})).addServers(${JSON.stringify(file)}, { ${name}: { command: 'x' } })`
      const [code] = await once(spawn(process.execPath, ['--input-type=module', '-e', script]), 'exit')
      return code
    })
    expect(await Promise.all(ends)).toEqual(names.map(() => 0))
    expect(serversIn(file)).toEqual(names)
  })

  it('keeps all secrets that are stored at the same time', async () => {
    const file = join(dir, 'credentials')
    writeFileSync(file, 'OLD=1\n', { mode: 0o600 })
    const names = ['ONE', 'TWO', 'THREE', 'FOUR']
    await Promise.all(names.map((name) => storeSecrets(file, new Map([[name, `value-of-${name}`]]))))
    for (const name of names) expect(readFileSync(file, 'utf8')).toContain(`value-of-${name}`)
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  it('is changed at the target of a link, and the link stays', async () => {
    mkdirSync(join(dir, 'elsewhere'))
    const [file, link] = [join(dir, 'elsewhere/mcp.json'), join(dir, 'mcp.json')]
    writeFileSync(file, '{"mcpServers":{}}')
    symlinkSync(file, link)
    await addServers(link, { a: { command: 'x' } })
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(serversIn(file)).toEqual(['a'])
  })

  it('says that the disk is full, not that permissions are wrong', async () => {
    const noSpace = Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
      syscall: 'write'
    })
    const edit = () => {
      throw noSpace
    }
    await expect(editFile(join(dir, 'grants.json'), edit)).rejects.toThrow(
      /ENOSPC.*: the disk is full; free space there\.$/
    )
  })
})
