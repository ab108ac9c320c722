import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { confine } from './child-covers.ts'
import { enginePlaces } from './engine-places.ts'

describe('what is covered for a child', () => {
  let dir = ''
  beforeEach(() => {
    dir = temporaryFolder()
    for (const name of ['data', 'project', 'own', 'home']) mkdirSync(join(dir, name))
    for (const file of ['data/store.db', 'own/mcp.json', 'project/mcp.json', 'project/server.js'])
      writeFileSync(join(dir, file), '')
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))

  const child = (more: object = {}) => {
    return { server: 'x', command: 'node', args: [], env: { HOME: join(dir, 'home') }, cwd: join(dir, 'home'), ...more }
  }
  const places = (...files: string[]) => ({ dataDir: join(dir, 'data'), files: files.map((file) => join(dir, file)) })
  const at = (...names: string[]) => names.map((name) => join(dir, name))

  it('is the data folder, and each of our files, by its folder if nothing else is in it', () => {
    expect(confine(child(), places('own/mcp.json', 'project/mcp.json'))).toMatchObject({
      folders: at('own', 'data').sort((a, b) => a.length - b.length),
      files: at('project/mcp.json')
    })
    // A draft or lock of ours is no reason to leave it open.
    writeFileSync(join(dir, 'own/mcp.json.lock'), '')
    expect(confine(child(), places('own/mcp.json')).folders).toContain(join(dir, 'own'))
  })

  it.each([
    ['works there', () => ({ cwd: join(dir, 'own') })],
    ['gets its path as an argument', () => ({ args: [`--db=${join(dir, 'own/notes.db')}`] })],
    ['gets its path in a variable', () => ({ env: { HOME: '/root', DB: join(dir, 'own/notes.db') } })]
  ])('is only the file in a folder where the child %s', (_why, more) => {
    const { folders, files } = confine(child(more()), places('own/mcp.json'))
    expect([folders, files]).toEqual([at('data'), at('own/mcp.json')])
  })

  it.each([
    ['its folder', () => ({ cwd: join(dir, 'data') })],
    ['its command', () => ({ command: join(dir, 'data/run') })],
    ['its home', () => ({ env: { HOME: join(dir, 'data') } })],
    ['an argument', () => ({ args: ['-y', `--db=${join(dir, 'data/x.db')}`] })],
    ['an argument through a link', () => ({ args: [join(dir, 'link/x.db')] })],
    ['an argument in the folder that it starts in', () => ({ cwd: undefined, args: ['../data/store.db'] })]
  ])('is an error for a child with %s in the data folder', (_what, more) => {
    symlinkSync(join(dir, 'data'), join(dir, 'link'))
    const before = process.cwd()
    try {
      process.chdir(join(dir, 'data'))
      expect(() => confine(child(more()), places())).toThrow(/is in the data folder .* Move it elsewhere/)
    } finally {
      process.chdir(before)
    }
  })

  it('does not refuse a word that only looks like a path, for a program started in the data folder', () => {
    const before = process.cwd()
    try {
      process.chdir(join(dir, 'data'))
      const words = { cwd: undefined, command: 'npx', args: ['-y', '@scope/name', '--to=a/b', '"; rm -rf /'] }
      expect(confine(child(words), places()).folders).toEqual(at('data'))
    } finally {
      process.chdir(before)
    }
  })

  it('includes every folder above, held in place, the outermost first', () => {
    const { held } = confine(child(), places('own/mcp.json', 'project/mcp.json'))
    expect(held).toEqual(expect.arrayContaining([dir, join(dir, 'project')]))
    expect(held).not.toContain('/')
    expect(held.indexOf(dir)).toBeLessThan(held.indexOf(join(dir, 'project')))
  })

  // Checked: if only docker.sock is covered, the folders are not in the list.
  it('is each folder and socket of a container engine, except for a command of the engine', () => {
    for (const name of ['podman', 'containerd']) mkdirSync(join(dir, name))
    writeFileSync(join(dir, 'docker.sock'), '')
    const engines = enginePlaces({ XDG_RUNTIME_DIR: dir, DOCKER_HOST: 'unix:///elsewhere/engine.sock' })
    expect(engines).toEqual(
      expect.arrayContaining([
        ...['/run/docker', '/run/containerd', '/run/podman', '/run/crio', '/run/buildkit', '/elsewhere/engine.sock'],
        ...at('podman', 'containerd', 'docker.sock')
      ])
    )
    const ours = { ...places(), engines: at('podman', 'containerd', 'docker.sock', 'missing') }
    expect(confine(child(), ours)).toMatchObject({ folders: at('data'), files: [], engines: ours.engines })
    expect(confine(child({ command: '/usr/bin/podman' }), ours)).toMatchObject({ folders: at('data'), engines: [] })
    // The whole folder, if nothing else is in it.
    mkdirSync(join(dir, 'engine'))
    const socket = join(dir, 'engine/engine.sock')
    expect(confine(child(), { ...places(), engines: [socket] }).engines).toEqual(at('engine'))
    expect(confine(child({ cwd: join(dir, 'engine') }), { ...places(), engines: [socket] }).engines).toEqual([socket])
  })

  // Checked: if an entry that names a folder of ours opens it, the folder is not in the list.
  it('is the folder of the credentials, and those of other instances, whatever an entry names', () => {
    for (const name of ['secrets', 'others']) mkdirSync(join(dir, name))
    writeFileSync(join(dir, 'secrets/credentials'), '')
    const ours = {
      ...places('own/mcp.json'),
      credentialsFile: join(dir, 'secrets/credentials'),
      userFolders: at('others', 'others/inner', 'missing')
    }
    const env = { HOME: join(dir, 'home'), A: join(dir, 'secrets'), B: join(dir, 'others/x') }
    expect(confine(child({ env }), ours).folders.sort()).toEqual(at('data', 'others', 'own', 'secrets'))
    for (const [folder, more] of [
      ['secrets', { args: [`--root=${join(dir, 'secrets')}`] }],
      ['secrets', { cwd: join(dir, 'secrets') }],
      ['others', { args: [join(dir, 'others/mcp.json')] }],
      ['others', { env: { HOME: join(dir, 'others') } }]
    ] as const)
      expect(() => confine(child(more), ours)).toThrow(`is in ${join(dir, folder)}, which is hidden from servers.`)
    // In a folder with other files, only the file is hidden.
    writeFileSync(join(dir, 'secrets/notes.txt'), '')
    expect(confine(child({ cwd: join(dir, 'secrets') }), ours).files).toEqual(at('secrets/credentials'))
  })

  it('includes the folder of each link to our files, which nobody may change, and the file that it leads to', () => {
    symlinkSync('../own/second.json', join(dir, 'project/linked.json'))
    symlinkSync('../project/mcp.json', join(dir, 'own/second.json'))
    const { readOnly, files } = confine(child(), places('project/linked.json'))
    expect([readOnly.sort(), files]).toEqual([at('own', 'project'), at('project/mcp.json')])
  })
})
