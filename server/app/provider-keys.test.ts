import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { loadSettings } from '../config/load-settings.ts'
import { createLogger } from '../lib/logger.ts'
import type { ModelsOptions } from '../models/models-options.ts'
import { fakeKeyValueStore } from '../storage/fake-key-value-store.ts'
import { ProviderKeys } from './provider-keys.ts'
import { openSharedKeys } from './shared-keys.ts'

const KEY = 'sk-ant-entered-in-the-page'
const ADMIN_TOKEN = 'an-admin-token-of-all'

/** One instance, with the key of its settings, a credentials file of its own, and what its models use. */
function instance(keyValues = fakeKeyValueStore(), token: string | null = ADMIN_TOKEN, file = newFile()) {
  const used: Omit<ModelsOptions, 'logger'>[] = []
  const keyed = { tryAccess: async () => {}, useAccess: (access: (typeof used)[number]) => void used.push(access) }
  const settings = loadSettings({ env: { ANTHROPIC_API_KEY: 'sk-ant-of-the-settings', CREDENTIALS_FILE: file } })
  const models = { catalog: async () => ({ default: 'demo/demo', models: [], providers: [] }) }
  const warnings: string[] = []
  const logger = { ...createLogger('silent'), warn: (text: string) => void warnings.push(text) } as never
  const shared = token === null ? undefined : openSharedKeys(keyValues, token)
  const keys = new ProviderKeys(settings, { file, shared, keyed, models, logger })
  return { keys, file, warnings, used: () => used.at(-1)?.anthropic?.apiKey, times: () => used.length }
}
const newFile = () => join(temporaryFolder(), 'credentials')

describe('a key that an administrator enters on one instance', () => {
  // Checked: without the store, the second instance goes on with the key of its settings.
  it('is used by all instances of the store, and its removal reaches them too', async () => {
    const keyValues = fakeKeyValueStore()
    const [one, two] = [instance(keyValues), instance(keyValues)]
    await two.keys.set('anthropic', 'sk-ant-an-older-one')
    await one.keys.set('anthropic', KEY)
    await two.keys.refresh()
    expect([one.used(), two.used()]).toEqual([KEY, KEY])
    await two.keys.refresh()
    expect(two.times()).toBe(2)
    const late = instance(keyValues)
    await late.keys.refresh()
    expect((await late.keys.list())[0]).toMatchObject({ id: 'anthropic', source: 'page' })
    await one.keys.remove('anthropic')
    // Its file still has the older one.
    await two.keys.refresh()
    expect([one.used(), two.used()]).toEqual(Array(2).fill('sk-ant-of-the-settings'))
    expect((await two.keys.list())[0]).toMatchObject({ source: 'settings' })
  })

  // Checked: if the store has the key itself, it is in this dump.
  it('can be read from the store with the admin token alone, and only as the key of its provider', async () => {
    const keyValues = fakeKeyValueStore()
    await instance(keyValues).keys.set('anthropic', KEY)
    const rows = await keyValues.list('provider-keys')
    expect(rows).toHaveLength(1)
    expect(JSON.stringify(rows)).not.toContain(KEY)
    expect(Buffer.from(String(rows[0]?.value), 'base64').toString()).not.toContain(KEY)
    const other = instance(keyValues, 'another-admin-token-here')
    await other.keys.refresh()
    await other.keys.refresh()
    expect(other.used()).toBeUndefined()
    expect(other.warnings).toEqual([expect.stringMatching(/key again for anthropic: .*another ADMIN_TOKEN/)])
    await keyValues.set('provider-keys', 'openai', rows[0]?.value ?? null)
    expect((await openSharedKeys(keyValues, ADMIN_TOKEN).read()).unreadable).toEqual(['openai'])
  })

  it('is used by instances that share the file, and a file that can not be read changes nothing', async () => {
    const one = instance(undefined, null)
    const two = instance(undefined, null, one.file)
    await one.keys.set('anthropic', KEY)
    await two.keys.refresh()
    expect(two.used()).toBe(KEY)
    writeFileSync(one.file, '{"half":')
    await two.keys.refresh()
    await two.keys.refresh()
    expect([two.used(), two.warnings.length]).toEqual([KEY, 1])
  })
})
