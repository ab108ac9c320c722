import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startRegistry } from '../fixtures/mcp-registry.ts'
import { spawnGateway } from '../support/gateway-process.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const WEATHER = {
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: 'io.github.someone/weather',
  description: 'Weather\u202e of the world',
  version: '1.0.2',
  packages: [
    {
      registryType: 'npm',
      identifier: '@some/weather',
      version: '1.0.2',
      transport: { type: 'stdio' },
      environmentVariables: [
        { name: 'API_KEY', description: 'Key of the service', isRequired: true, isSecret: true },
        { name: 'CITY', description: 'Your city', isRequired: true }
      ]
    }
  ]
}

async function workplace() {
  const dir = temporaryFolder()
  const config = join(dir, 'mcp.json')
  const registry = await startRegistry([WEATHER, { ...WEATHER, name: 'io.github.someone/other', description: 'Else' }])
  onTestFinished(() => registry.close())
  const environment: Record<string, string> = { HOME: dir }
  const run = async (...args: string[]) => {
    const own = ['--config', config, '--data-dir', join(dir, 'data')]
    const command = spawnGateway(['servers', ...args, ...own], environment)
    command.stdin.end()
    const texts = { out: '', err: '' }
    command.stdout.on('data', (chunk) => (texts.out += chunk))
    command.stderr.on('data', (chunk) => (texts.err += chunk))
    const code = await new Promise((done) => command.once('close', done))
    return { code, ...texts }
  }
  const saved = () => (existsSync(config) ? JSON.parse(readFileSync(config, 'utf8')).mcpServers : undefined)
  return { dir, registry, run, saved, environment }
}

const ENTRY = {
  command: 'npx',
  args: ['-y', '@some/weather@1.0.2'],
  env: { API_KEY: `\${secret:WEATHER_API_KEY}`, CITY: 'Bern' },
  description: 'Weather⟨U+202E⟩ of the world'
}

describe('servers of the public MCP Registry', { timeout: 60_000 }, () => {
  it('are fetched once, then searched and imported without a network', async () => {
    const { registry, run, saved } = await workplace()
    const early = await run('search', 'weather')
    expect([early.code, early.err]).toEqual([1, expect.stringContaining('servers fetch')])
    expect(await run('fetch', registry.url)).toMatchObject({ code: 0, out: expect.stringContaining('2 servers') })
    const asked = registry.asked.length
    const found = await run('search', 'WEATHER')
    expect(found).toMatchObject({ code: 0, out: expect.stringContaining('io.github.someone/weather 1.0.2\n') })
    expect(found.out).not.toContain('someone/other')
    // The value that only the user knows is asked for by name, and nothing is added without confirmation.
    const name = 'io.github.someone/weather'
    expect((await run('import', name, '--yes')).err).toContain('CITY (Your city): --set CITY=VALUE')
    const shown = await run('import', name, '--set', 'CITY=Bern')
    expect(shown.out).toContain('npx -y @some/weather@1.0.2')
    // Seen before: a list of any address was named like the public registry.
    expect(shown.out).toContain(`(${registry.url}, ${name})`)
    expect(shown.out).not.toContain('MCP Registry')
    expect(shown.out).toContain(`variable: API_KEY=\${secret:WEATHER_API_KEY}`)
    expect([shown.code, shown.err]).toEqual([1, expect.stringContaining('Nothing was imported')])
    expect(saved()).toBeUndefined()
    const added = await run('import', name, '--set', 'CITY=Bern', '--yes')
    expect(added.out).toContain('mcp-orchestrator servers secret WEATHER_API_KEY')
    expect(added.out).toContain('mcp-orchestrator servers test weather')
    expect(saved()).toEqual({ weather: ENTRY })
    expect(registry.asked).toHaveLength(asked)
    expect((await run('import', 'io.github.someone/wether')).err).toContain('Did you mean "io.github.someone/weather"')
  })

  it('are imported from a file or an address, under a name of their own', async () => {
    const { dir, registry, run, saved } = await workplace()
    const file = join(dir, 'server.json')
    writeFileSync(file, JSON.stringify(WEATHER))
    await run('import', file, '--set', 'CITY=Bern', '--yes')
    const address = `${registry.url}/v0.1/servers/${encodeURIComponent(WEATHER.name)}/versions/latest`
    await run('import', address, '--set', 'CITY=Basel', '--as', 'second', '--yes')
    expect(saved()).toEqual({
      weather: ENTRY,
      second: { ...ENTRY, env: { API_KEY: `\${secret:SECOND_API_KEY}`, CITY: 'Basel' } }
    })
    const { err } = await run('import', `${registry.url}/v0.1/servers`)
    expect(err).toContain('is not a server.json')
    expect((await run('import', '--set', 'A=1')).err).toContain('--set is for servers of a server.json only')
  })

  // Seen failing: the server of another publisher got the secret of the first one, or the variable of this machine.
  it('get no secret that another entry or this machine has, and are the same when they are imported again', async () => {
    const { dir, run, saved, environment } = await workplace()
    const [file, other] = [join(dir, 'server.json'), join(dir, 'other.json')]
    writeFileSync(file, JSON.stringify(WEATHER))
    const [first] = WEATHER.packages
    const key = { name: 'KEY', isRequired: true, isSecret: true }
    const packages = [{ ...first, environmentVariables: [key] }]
    writeFileSync(other, JSON.stringify({ ...WEATHER, name: 'io.github.else/weather-api', packages }))
    environment.MOON_API_KEY = 'of-this-machine'
    for (const words of [[file], [file], [other], [file, '--as', 'moon']])
      await run('import', ...words, ...(words[0] === file ? ['--set', 'CITY=Bern'] : []), '--yes')
    expect(saved()).toMatchObject({
      weather: ENTRY,
      'weather-api': { env: { KEY: `\${secret:WEATHER_API_KEY_2}` } },
      moon: { env: { API_KEY: `\${secret:MOON_API_KEY_2}` } }
    })
    expect(Object.keys(saved())).toHaveLength(3)
  })
})
