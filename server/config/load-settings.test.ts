import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../tests/support/temporary-folder.ts'
import { openCredentials } from '../catalog/credentials.ts'
import { loadSettings, readDotenv } from './load-settings.ts'
import { OUR_SECRETS, SETTINGS } from './settings.ts'

describe('loadSettings', () => {
  it('has the documented defaults', () => {
    const settings = loadSettings({ env: {} })
    expect(settings).toMatchObject({ PORT: 3000, HOST: '127.0.0.1', DATA_DIR: './data', SANDBOX_MEMORY_MB: 512 })
    expect(settings.SANDBOX_UIDS).toEqual({ first: 20_000, last: 20_999 })
    expect(settings).toMatchObject({ SANDBOX_CPUS: 0.5, SANDBOX_NETWORK: 'none', MAX_SESSIONS: 100, LOG_LEVEL: 'info' })
    expect(settings.REDIS_URL).toBeUndefined()
  })

  it('prefers flags to the environment, and the environment to .env', () => {
    const dotenv = 'PORT=1\nHOST=127.0.0.3\nWARM_POOL_SIZE=7'
    const settings = loadSettings({ flags: { port: '3' }, env: { PORT: '2', HOST: '127.0.0.2' }, dotenv })
    expect(settings).toMatchObject({ PORT: 3, HOST: '127.0.0.2', WARM_POOL_SIZE: 7 })
  })

  it.each([
    [{ env: {} }, true],
    [{ env: { MCP_CONFIG: './mcp.json' } }, false],
    [{ env: {}, flags: { config: './mcp.json' } }, false],
    // Any program could have written the file.
    [{ env: {}, dotenv: 'MCP_CONFIG=/tmp/mcp.json' }, true],
    [{ env: { HOME: '/me' }, dotenv: 'MCP_CONFIG=/me/.config/mcp-orchestrator/mcp.json' }, false]
  ])('says whether the registry was only found: %j', (sources, isFound) => {
    expect(loadSettings(sources).registryIsFound).toBe(isFound)
  })

  it.each([
    [{}, /KUBERNETES_IMAGE/],
    [{ KUBERNETES_IMAGE: 'r/i', SANDBOX_IMAGE: 'mine' }, /SANDBOX_IMAGE/],
    [{ KUBERNETES_IMAGE: 'r/i', SANDBOX_NETWORK: 'bridge' }, /SANDBOX_NETWORK/],
    [{ KUBERNETES_IMAGE: 'r/i', KUBERNETES_TOLERATIONS: 'sandboxes' }, /taints such as/]
  ])('refuses what a cluster does not have: %j', (env, said) => {
    expect(() => loadSettings({ env: { SANDBOX_ENGINE: 'kubernetes', ...env } })).toThrow(said)
  })

  it('treats an empty variable as not set', () => {
    expect(loadSettings({ env: { PORT: '' } }).PORT).toBe(3000)
  })

  it('requires a value for a flag: an empty path would be this folder', () => {
    expect(() => loadSettings({ flags: { 'data-dir': '' }, env: {} })).toThrow(/^--data-dir needs a value\.$/)
  })

  it('continues without a missing .env, but not without an unreadable one', () => {
    const dir = temporaryFolder()
    const file = join(dir, '.env')
    expect(readDotenv(file)).toBe('')
    writeFileSync(file, '\uFEFFAUTH_TOKEN=of-a-windows-editor')
    expect(loadSettings({ env: {}, dotenv: readDotenv(file) }).AUTH_TOKEN).toBe('of-a-windows-editor')
    // Even root can't read this.
    symlinkSync('loop', join(dir, 'loop'))
    expect(() => readDotenv(join(dir, 'loop'))).toThrow(/loop can't be read \(ELOOP.*let this user read it/)
    mkdirSync(join(dir, 'venv'))
    expect(readDotenv(join(dir, 'venv'))).toBe('')
    discard(dir)
  })

  it('accepts proxies as addresses, ranges, or this machine', () => {
    expect(loadSettings({ env: {} }).TRUST_PROXY).toEqual([])
    const { TRUST_PROXY } = loadSettings({ env: { TRUST_PROXY: 'loopback, 10.0.0.0/8,2001:db8::1' } })
    expect(TRUST_PROXY).toEqual(['127.0.0.0/8', '::1', '10.0.0.0/8', '2001:db8::1'])
  })

  it.each([
    ['PORT', 'http', /^PORT must be a whole number from 0 to 65535, not "http"\.$/],
    ['PORT', '1e3', /^PORT must be/],
    ['SANDBOX_UIDS', '0-999', /^SANDBOX_UIDS must be 16 to 10000 user ids from 1000 on/],
    ['SANDBOX_UIDS', '20000', /FIRST-LAST/],
    ['SANDBOX_UIDS', '20000-20001', /^SANDBOX_UIDS/],
    ['SANDBOX_UIDS', '30000-20000', /^SANDBOX_UIDS/],
    ['SANDBOX_UIDS', '20000-40000', /^SANDBOX_UIDS/],
    ['SANDBOX_CPUS', '-1', /^SANDBOX_CPUS must be a number/],
    ['LLM_PROVIDER', 'skynet', /^LLM_PROVIDER must be one of anthropic/],
    ['REDIS_URL', 'localhost:6379', /^REDIS_URL must be a URL that begins with redis:\/\/ or rediss:\/\/\.$/],
    ['LOG_LEVEL', 'loud', /^LOG_LEVEL must be one of/],
    ['TRUST_PROXY', 'true', /^TRUST_PROXY must be addresses or CIDR/],
    ['TRUST_PROXY', '10.0.0.0/33', /^TRUST_PROXY must be/],
    ['AUTH_TOKEN', 'short', /^AUTH_TOKEN must have/],
    ['AUTH_TOKEN', '$(openssl rand -hex 32)', /^AUTH_TOKEN contains a shell expression/],
    ['ADMIN_TOKEN', 'short', /^ADMIN_TOKEN must have/],
    ['EMBEDDING_MODEL', 'small', /^EMBEDDING_MODEL must be openai\/MODEL, openai-compatible\/MODEL or/],
    ['EMBEDDING_MODEL', 'openai/small', /^EMBEDDING_MODEL is .* set OPENAI_API_KEY too/]
  ])('stops at %s=%s with a sentence', (name, value, sentence) => {
    expect(() => loadSettings({ env: { [name]: value } })).toThrow(sentence)
  })

  it('refuses an admin token that equals the access token', () => {
    const token = 'a-token-of-some-length'
    expect(() => loadSettings({ env: { AUTH_TOKEN: token, ADMIN_TOKEN: token } })).toThrow(/^ADMIN_TOKEN must differ/)
  })

  it('names the flag if its value is invalid', () => {
    expect(() => loadSettings({ flags: { port: 'x' }, env: {} })).toThrow(/^--port must be/)
  })

  it('does not repeat a password from a malformed URL', () => {
    expect(() => loadSettings({ env: { REDIS_URL: 'http://user:hunter2@host' } })).toThrow(
      expect.not.objectContaining({ message: expect.stringContaining('hunter2') })
    )
  })

  // Checked: if the value is repeated, it is in the message.
  it('accepts any texts for settings, or names the invalid one without repeating a secret', () => {
    const names = Object.keys(SETTINGS) as (keyof typeof SETTINGS)[]
    const secret = 'hush-5c1f'
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('-1', '1e9', '0x10', 'NaN', ' 1', secret))
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), text), fc.string(), (env, dotenv) => {
        try {
          loadSettings({ env, dotenv })
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_setting' })
          expect(names.some((name) => String(error).includes(name))).toBe(true)
        }
      }),
      { numRuns: 200 }
    )
    for (const name of names.filter((each) => /_KEY$|_TOKEN$|_URL$/.test(each))) {
      try {
        loadSettings({ env: { [name]: `${secret}:` } })
      } catch (error) {
        expect(String(error)).not.toContain(secret)
      }
    }
  })

  // Checked: without the check, it would listen.
  it.each(['0.0.0.0', '::', '192.0.2.1', 'example.test'])('refuses to listen on %s without AUTH_TOKEN', (HOST) => {
    expect(() => loadSettings({ env: { HOST } })).toThrow(/AUTH_TOKEN/)
    expect(loadSettings({ env: { HOST, AUTH_TOKEN: 'a-token-of-some-length' } }).HOST).toBe(HOST)
  })
})

// Checked: with the secret settings alone, all but the last are filled in.
it.each([
  'AWS_CONTAINER_AUTHORIZATION_TOKEN',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  'AWS_SECRET_ACCESS_KEY'
])('lets no server get %s from the environment', (name) => {
  const { source } = openCredentials({ file: undefined, environment: { [name]: 'x', OTHER: 'y' }, ours: OUR_SECRETS })
  expect([source().env(name), source().secret(name), source().env('OTHER')]).toEqual([undefined, undefined, 'y'])
})
