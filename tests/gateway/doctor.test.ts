import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { FakeObjectService } from '../../server/storage/objects/fake-object-service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const main = resolve(import.meta.dirname, '../../server/main.ts')

/** Someone who has the gateway in a client, and neither an engine nor a workspace. */
function gatewayUser(mcpServers: Record<string, unknown>) {
  const home = temporaryFolder()
  const cwd = join(home, 'somewhere')
  const config = join(home, '.config/mcp-orchestrator')
  mkdirSync(cwd)
  mkdirSync(config, { recursive: true })
  writeFileSync(join(config, 'mcp.json'), JSON.stringify({ mcpServers }))
  const env = { HOME: home, DOCKER_HOST: 'unix:///nonexistent/docker.sock', LLM_PROVIDER: 'demo' }
  const run = (args: string[], more: Record<string, string> = {}) => {
    const options = { cwd, env: { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR, ...env, ...more } }
    const words = ['--disable-warning=ExperimentalWarning', main, ...args]
    return promisify(execFile)(process.execPath, words, options).then(
      ({ stdout, stderr }) => ({ code: 0, out: stdout, err: stderr }),
      ({ code, stdout, stderr }) => ({ code, out: stdout, err: stderr })
    )
  }
  return { home, cwd, config, run }
}

describe('commands of someone who uses the gateway alone', { timeout: 60_000 }, () => {
  it('doctor looks at their own registry, and warns of an engine that nothing needs', async () => {
    const { home, cwd, config, run } = gatewayUser({ fine: { command: 'node' } })
    const { code, out } = await run(['doctor'], { SANDBOX_NETWORK: 'bridge' })
    expect(out).toMatch(/^warn {2}engine +.*start Docker.*Only the workspace and servers with "sandbox" need it/m)
    expect(out).toMatch(/^warn {2}network +ON: /m)
    expect(out).toContain(`servers in ${config}/mcp.json, data in ${home}/.local/share/mcp-orchestrator`)
    expect(out).toMatch(/^ok {4}server +fine: /m)
    expect(out).not.toContain('FAILS')
    expect(code).toBe(0)
    expect(existsSync(join(home, '.local'))).toBe(false)
    expect(out).toMatch(/^ok {4}store +embedded; the first start creates /m)
    // A workspace was started here, or a server wants a container: then the engine is needed.
    mkdirSync(join(cwd, 'data'))
    expect(await run(['doctor'])).toMatchObject({ code: 1, out: expect.stringMatching(/^FAILS engine/m) })
    const needy = gatewayUser({ boxed: { command: 'node', sandbox: {} } })
    expect(await needy.run(['doctor'])).toMatchObject({ code: 1, out: expect.stringMatching(/^FAILS engine/m) })
  })

  it('doctor warns of a model that is not to be had', async () => {
    const { run } = gatewayUser({})
    const { out } = await run(['doctor'], { LLM_MODEL: 'claude-typo', LLM_PROVIDER: '' })
    expect(out).toMatch(/^warn {2}models +.*the default is demo\/demo. LLM_MODEL is "claude-typo", but no key is set$/m)
  })

  // A key that can only read is not enough, and the bucket must belong to this installation.
  it('doctor tries all that an instance does in the bucket, and says whose files are there', async () => {
    const service = await new FakeObjectService().start()
    const keys = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's' }
    const bucket = { CHECKPOINT_STORE: 's3://team/p', S3_ENDPOINT: service.endpoint, ...keys }
    try {
      const { run, cwd } = gatewayUser({})
      const said = async () => /^(\S+) +bucket +(.*)$/m.exec((await run(['doctor'], bucket)).out)?.slice(1)
      expect(await said()).toEqual(['ok', 's3://team/p, no files yet'])
      expect(service.keys()).toEqual([])
      for (const [method, words] of [
        ['PUT', 'refused to store an object'],
        ['DELETE', 'refused to delete objects']
      ] as const) {
        service.fault = (request) => (request.method === method ? 'forbidden' : undefined)
        expect(await said()).toEqual(['FAILS', expect.stringContaining(words)])
      }
      service.fault = () => undefined
      const marker = Buffer.from(JSON.stringify({ v: 1, id: 'another', origin: 'o' }))
      service.objects.set('p/deployment.json', { bytes: marker, modifiedAt: Date.now() })
      mkdirSync(join(cwd, 'data'))
      expect(await said()).toEqual(['FAILS', expect.stringContaining('files of another session store')])
    } finally {
      await service.stop()
    }
  })

  it('servers and audit say which file and folder they take, unless these were named', async () => {
    const { home, config, run } = gatewayUser({})
    const data = `${home}/.local/share/mcp-orchestrator`
    expect((await run(['servers', 'list'])).err).toBe(`Using ${config}/mcp.json, data in ${data}.\n`)
    expect((await run(['audit'])).err).toContain(`Using data in ${data}.\n`)
    const named = ['--config', join(config, 'mcp.json'), '--data-dir', data]
    expect((await run(['servers', 'list', ...named])).err).toBe('')
    expect((await run(['servers', 'list'], { MCP_CONFIG: join(config, 'mcp.json'), DATA_DIR: data })).err).toBe('')
  })
})
