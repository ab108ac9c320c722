import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { silentLogger } from '../lib/logger.ts'
import { loadRegistry, type RegistryDiff } from './registry.ts'
import { RegistryWatch } from './watch-registry.ts'

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

async function watched(
  servers: Record<string, unknown>,
  isLink = false,
  meanwhile?: (write: (servers: unknown) => void) => void,
  lookMs = 50
) {
  const dir = temporaryFolder()
  const file = join(dir, 'mcp.json')
  const real = isLink ? join(dir, 'elsewhere/mcp.json') : file
  const write = (mcpServers: unknown) => writeFileSync(real, JSON.stringify({ mcpServers }))
  mkdirSync(join(dir, 'elsewhere'))
  if (isLink) symlinkSync(real, file)
  write(servers)
  const diffs: RegistryDiff[] = []
  let wake = () => {}
  const onChange = async (_registry: unknown, diff: RegistryDiff) => {
    diffs.push(diff)
    wake()
  }
  const watch = new RegistryWatch(await loadRegistry(file, { optional: false }), {
    file,
    logger: silentLogger,
    onChange,
    debounceMs: 10,
    lookMs
  })
  meanwhile?.(write)
  watch.start()
  closers.push(() => {
    watch.close()
    rmSync(dir, { recursive: true, force: true })
  })
  const next = async (change: () => void) => {
    const changed = new Promise<void>((done) => {
      wake = done
    })
    change()
    await changed
    return diffs.at(-1)
  }
  return { file, dir, write, next, diffs, watch }
}

describe('watching the registry', () => {
  it('sees a change, and a replaced file', async () => {
    const { file, dir, write, next } = await watched({ a: { command: 'a' } })
    expect((await next(() => write({ a: { command: 'a' }, b: { command: 'b' } })))?.added[0]?.name).toBe('b')
    const diff = await next(() => {
      writeFileSync(join(dir, 'draft'), JSON.stringify({ mcpServers: { b: { command: 'other' } } }))
      renameSync(join(dir, 'draft'), file)
    })
    expect([diff?.removed[0]?.name, diff?.changed[0]?.name]).toEqual(['a', 'b'])
  })

  it('changes nothing while the file is invalid', async () => {
    const { file, write, next, diffs, watch } = await watched({ a: { command: 'a' } })
    writeFileSync(file, '{ "mcpServers": ')
    await watch.reload()
    expect(diffs).toEqual([])
    expect((await next(() => write({})))?.removed[0]?.name).toBe('a')
  })

  it('sees a change behind a link at once, also after the link was changed', async () => {
    const { dir, file, write, next } = await watched({ a: { command: 'a' } }, true, undefined, 3_600_000)
    expect((await next(() => write({ b: { command: 'b' }, a: { command: 'a' } })))?.added[0]?.name).toBe('b')
    mkdirSync(join(dir, 'other'))
    const other = join(dir, 'other/servers.json')
    const writeOther = (name: string) =>
      writeFileSync(other, JSON.stringify({ mcpServers: { [name]: { command: 'c' } } }))
    writeOther('c')
    const relinked = await next(() => {
      symlinkSync(other, join(dir, 'new'))
      renameSync(join(dir, 'new'), file)
    })
    expect(relinked?.added[0]?.name).toBe('c')
    expect((await next(() => writeOther('d')))?.added[0]?.name).toBe('d')
  })

  it('sees a change that was made behind a link before the watch began', async () => {
    const { diffs } = await watched({ a: { command: 'a' } }, true, (write) => write({ b: { command: 'b' } }))
    await expect.poll(() => diffs.at(-1)?.added[0]?.name).toBe('b')
  })

  it('waits for a file that is missing for a moment while it is replaced', async () => {
    const { file, write, next, diffs, watch } = await watched({ a: { command: 'a' } })
    rmSync(file)
    setTimeout(() => write({ a: { command: 'a' } }), 100)
    await watch.reload()
    expect(diffs).toEqual([])
    expect((await next(() => rmSync(file)))?.removed[0]?.name).toBe('a')
  })
})
