import { chmodSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../../tests/support/temporary-folder.ts'
import { loadSettings } from '../../config/load-settings.ts'
import { findServe, registerServe } from './registration.ts'

function place(more: Record<string, string> = {}) {
  const dataDir = temporaryFolder()
  const home = temporaryFolder()
  writeFileSync(join(dataDir, 'store.db'), '', { mode: 0o600 })
  const environment = { HOME: home, XDG_DATA_HOME: home }
  const { settings } = { settings: loadSettings({ env: { DATA_DIR: dataDir, ...more } }) }
  const file = join(home, 'mcp-orchestrator', 'serve.json')
  return { dataDir, environment, settings, file, register: () => registerServe(settings, environment) }
}

it('is found by the same user while it runs', () => {
  const { dataDir, environment, file, register } = place()
  expect(findServe(environment)).toBeUndefined()
  const unregister = register()
  expect(findServe(environment)).toBe(dataDir)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  unregister()
  expect(findServe(environment)).toBeUndefined()
})

it('is not replaced by a second one, and not removed with it', () => {
  const first = place()
  first.register()
  const second = registerServe(place().settings, first.environment)
  second()
  expect(findServe(first.environment)).toBe(first.dataDir)
})

it.each([{ AUTH_TOKEN: 'a-token-of-a-team-with-enough-length' }, { REDIS_URL: 'redis://127.0.0.1:1' }])(
  'is not there for a server with %j',
  (more) => {
    const { environment, register } = place(more)
    register()
    expect(findServe(environment)).toBeUndefined()
  }
)

// Checked: if the file is believed as it is, all of these lead to another store.
it.each<[string, (file: string, dataDir: string) => void]>([
  ['readable by others', (file) => chmodSync(file, 0o644)],
  ['in a folder that others can change', (file) => chmodSync(join(file, '..'), 0o777)],
  ['of a process that has ended', (file) => edit(file, { pid: 4_194_000 })],
  ['of another process with the same number', (file) => edit(file, { born: '1' })],
  ['of another start of the machine', (file) => edit(file, { boot: 'other' })],
  ['of another version', (file) => edit(file, { version: '0.0.0' })],
  ['for a relative folder', (file) => edit(file, { dataDir: 'data' })],
  ['for a folder without a store', (_file, dataDir) => rmSync(join(dataDir, 'store.db'))],
  ['for a store that others can change', (_file, dataDir) => chmodSync(join(dataDir, 'store.db'), 0o666)],
  ['not JSON', (file) => writeFileSync(file, '{')],
  [
    'a link',
    (file) => {
      const target = join(temporaryFolder(), 'other')
      writeFileSync(target, readFileSync(file), { mode: 0o600 })
      rmSync(file)
      symlinkSync(target, file)
    }
  ]
])('is not believed if it is %s', (_, spoil) => {
  const { dataDir, environment, file, register } = place()
  register()
  spoil(file, dataDir)
  expect(findServe(environment)).toBeUndefined()
})

function edit(file: string, change: object): void {
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...change }))
}
