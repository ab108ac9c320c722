import { homedir } from 'node:os'
import { describe, expect, it } from 'vitest'
import { readEntry } from './read-entry.ts'

const read = (more: Record<string, unknown>) => {
  const entry = readEntry('a', { command: 'x', ...more }, 1)
  return entry.kind === 'local' ? entry : undefined
}

describe('sandbox in mcp.json', () => {
  it('is true, false, or an object', () => {
    expect(read({ sandbox: true })?.sandbox).toEqual({})
    expect(read({ sandbox: false })).not.toHaveProperty('sandbox')
    expect(read({ sandbox: { network: 'none' } })?.sandbox).toEqual({ network: [] })
    const all = { image: 'i', network: ['*.a.com:443'], folders: ['/srv/x'], memoryMb: 64, cpus: 0.5 }
    expect(read({ sandbox: all, cwd: '/srv/y/' })).toMatchObject({ sandbox: all, cwd: '/srv/y' })
  })

  it.each([
    [{ sandbox: 'yes' }, 'must be true, false or an object'],
    [{ sandbox: { colour: 1 } }, 'is unknown; valid keys are'],
    [{ sandbox: { network: 'bridge' } }, 'must be "none" or a list of hosts'],
    [{ sandbox: { network: ['http://a.com'] } }, 'must be a host'],
    [{ sandbox: { folders: ['x'] } }, 'must be an absolute path'],
    [{ sandbox: true, cwd: '.' }, 'must be an absolute path'],
    [{ sandbox: true, cwd: '/srv/../' }, '/ is too much'],
    [{ sandbox: true, cwd: homedir() }, 'is too much'],
    [{ sandbox: { folders: ['/etc/'] } }, '/etc is too much'],
    [{ sandbox: { folders: ['/var/run/docker.sock'] } }, "can't be shared"],
    [{ sandbox: { folders: ['/srv/../proc/1'] } }, "/proc/1 can't be shared"]
  ])('refuses %j', (more, reason) => {
    expect(() => read(more)).toThrow(reason)
  })

  it('does not change the folder of a server without one', () => {
    expect(read({ cwd: '.' })?.cwd).toBe('.')
  })
})
