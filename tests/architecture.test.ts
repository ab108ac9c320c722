import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { PATIENCE_MS } from './patience-ms.ts'

const root = resolve(import.meta.dirname, '..')

/** Imports go from a rank to a later one only; folders of one rank don't know each other. */
const RANKS: string[][] = [
  ['server/main.ts', 'server/gateway-main.ts'],
  ['server/cli'],
  ['server/app/app.ts'],
  ['server/app/app-lifecycle.ts'],
  ['server/app/app-metrics.ts'],
  ['server/app/app-health.ts'],
  ['server/app/app-servers.ts'],
  ['server/app/app-gateway.ts'],
  ['server/app/app-audit.ts'],
  ['server/app/app-models.ts'],
  ['server/config', 'server/http', 'server/socket', 'server/gateway'],
  ['server/sessions'],
  ['server/agent'],
  ['server/tools'],
  ['server/sandbox', 'server/models', 'server/storage', 'server/catalog'],
  ['server/lib', 'contract', 'workspace-server']
]

/** Packages that stay behind one door. */
const FENCES: [pattern: RegExp, rooms: string[]][] = [
  [/^dockerode$/, ['server/sandbox/docker']],
  [/^ioredis$/, ['server/storage/redis']],
  [/^(ai|@ai-sdk\/.*)$/, ['server/models']],
  [/^@modelcontextprotocol\//, ['server/tools', 'server/gateway', 'server/sandbox', 'workspace-server']],
  [/^(fastify|@fastify\/.*)$/, ['server/http']],
  [/^@opentelemetry\//, ['server/tools/tracing']],
  [/^prom-client$/, ['server/http']],
  [/^node:sqlite$/, ['server/storage/embedded']]
]

interface SourceFile {
  path: string
  text: string
  imports: string[]
}

const files = ['contract', 'server', 'workspace-server', 'web'].flatMap(sources)
const shipped = files.filter(({ path }) => !/(\.(test|contract|model|fixture)|\/fake-[a-z-]+)\.ts$/.test(path))

function sources(folder: string): SourceFile[] {
  const dir = join(root, folder)
  let names: string[]
  try {
    names = readdirSync(dir, { recursive: true, encoding: 'utf8' })
  } catch {
    return []
  }
  return names
    .filter((name) => /\.(ts|vue)$/.test(name))
    .map((name) => {
      const text = readFileSync(join(dir, name), 'utf8')
      const imports = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '')
      return { path: join(folder, name), text, imports }
    })
}

const within = (path: string, room: string) => path === room || path.startsWith(`${room}/`)
const rankOf = (path: string) => RANKS.findIndex((rooms) => rooms.some((room) => within(path, room)))
const roomOf = (path: string) => RANKS.flat().find((room) => within(path, room))
const local = ({ path, imports }: SourceFile) =>
  imports.filter((name) => name.startsWith('.')).map((name) => relative(root, resolve(root, dirname(path), name)))

describe('the house', () => {
  it('finds its files', () => {
    expect(shipped.length).toBeGreaterThan(30)
  })

  it('imports downwards only', () => {
    const wrong = shipped.flatMap((file) =>
      local(file)
        .filter((target) => roomOf(target) !== roomOf(file.path) && rankOf(target) <= rankOf(file.path))
        .map((target) => `${file.path} imports ${target}`)
    )
    expect(wrong).toEqual([])
  })

  it('lets only app and cli know the settings', () => {
    const wrong = shipped.filter(
      (file) =>
        !/^server\/(cli|config|app(-gateway|-audit|-models)?\.ts)/.test(file.path) &&
        local(file).some((t) => within(t, 'server/config'))
    )
    expect(wrong.map(({ path }) => path)).toEqual([])
  })

  // Handing all of it on to a child is not reading it.
  it('reads the environment in config and cli only', () => {
    const wrong = shipped.filter(
      ({ path, text }) => /process\.env(?!,)/.test(text) && !/^(server\/(config|cli)|workspace-server)\//.test(path)
    )
    expect(wrong.map(({ path }) => path)).toEqual([])
  })

  it('keeps every fenced package in its room', () => {
    const wrong = shipped.flatMap((file) =>
      FENCES.filter(([pattern, rooms]) => {
        return file.imports.some((name) => pattern.test(name)) && !rooms.some((room) => within(file.path, room))
      }).map(([pattern]) => `${file.path} imports ${pattern}`)
    )
    expect(wrong).toEqual([])
  })

  it('has web import nothing of ours but contract', () => {
    const wrong = shipped.filter(
      (file) => within(file.path, 'web') && local(file).some((t) => !/^(web|contract)\//.test(t))
    )
    expect(wrong.map(({ path }) => path)).toEqual([])
  })

  it('has contract import zod only', () => {
    const foreign = shipped
      .filter(({ path }) => within(path, 'contract'))
      .flatMap(({ imports }) => imports.filter((name) => !name.startsWith('./') && name !== 'zod'))
    expect(foreign).toEqual([])
  })

  it('has no file longer than a person reads at once', () => {
    const long = shipped.filter(({ path, text }) => text.split('\n').length > (path.endsWith('.vue') ? 200 : 400))
    expect(long.map(({ path }) => path)).toEqual([])
  })

  // A short wait proves nothing more, and fails where others use the machine too.
  it('waits nowhere for less than all tests do', () => {
    const short = [...files, ...sources('tests')].flatMap(({ path, text }) =>
      [...text.matchAll(/\b(?:waitFor|waitUntil|poll|it|test|describe)\b.*\btimeout: ([\d_]+)/g)]
        .filter(([, ms = '']) => Number(ms.replaceAll('_', '')) < PATIENCE_MS)
        .map(([line]) => `${path}: ${line}`)
    )
    expect(short).toEqual([])
  })

  it('has no folder or file for odds and ends', () => {
    expect(
      files.map(({ path }) => path).filter((path) => /(^|\/)(utils?|helpers?|services?|index)(\.|\/)/.test(path))
    ).toEqual([])
  })
})
