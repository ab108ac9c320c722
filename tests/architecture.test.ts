import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { PATIENCE_MS } from './support/patience-ms.ts'

const root = resolve(import.meta.dirname, '..')

/**
 * Imports go from a rank to a later one only; rooms of one rank don't import each other. A room is a folder with all that is below it,
 * a single file, or, with `/*`, a folder's own files.
 */
const RANKS: string[][] = [
  ['server/main.ts', 'server/gateway-main.ts'],
  ['server/cli'],
  ['server/app'],
  ['server/config', 'server/http', 'server/socket', 'server/gateway'],
  ['server/sessions'],
  ['server/agent'],
  ['server/tools', 'server/code'],
  ['server/policy', 'server/audit', 'server/routing', 'server/connections'],
  ['server/calls'],
  ['server/sandbox', 'server/models', 'server/storage', 'server/catalog'],
  ['workspace-server'],
  ['server/lib', 'contract']
]

/** The same rule inside the large rooms. */
const INSIDE: Record<string, string[][]> = {
  'server/cli': [['server/cli/doctor', 'server/cli/image', 'server/cli/servers'], ['server/cli/*']],
  'server/app': [
    ['server/app/app.ts', 'server/app/migration'],
    ['server/app/core.ts'],
    ['server/app/app-lifecycle.ts'],
    ['server/app/app-metrics.ts'],
    ['server/app/app-health.ts'],
    ['server/app/app-servers.ts'],
    ['server/app/app-gateway.ts'],
    ['server/app/load-gateway.ts'],
    ['server/app/shared-parts.ts', 'server/app/app-models.ts', 'server/app/our-places.ts'],
    ['server/app/gateway'],
    [
      'server/app/app-audit.ts',
      'server/app/bucket-watch.ts',
      'server/app/open-store.ts',
      'server/app/open-logins.ts',
      'server/app/open-checkpoints.ts',
      'server/app/provider-keys.ts'
    ],
    ['server/app/engine', 'server/app/data-paths.ts', 'server/app/shared-keys.ts']
  ],
  'server/http': [['server/http/create-http-server.ts'], ['server/http/routes'], ['server/http/*']],
  'server/gateway': [
    ['server/gateway/doors'],
    ['server/gateway/expose/http'],
    ['server/gateway/expose'],
    ['server/gateway/code'],
    ['server/gateway/execute'],
    ['server/gateway/params'],
    ['server/gateway/*'],
    ['server/gateway/asking']
  ],
  'server/sessions': [
    ['server/sessions/directory'],
    ['server/sessions/chat', 'server/sessions/files'],
    ['server/sessions/turns'],
    ['server/sessions/feed'],
    ['server/sessions/sandboxes', 'server/sessions/access'],
    ['server/sessions/attachments', 'server/sessions/changes']
  ],
  'server/tools': [['server/tools/enrichment'], ['server/tools/*']],
  'server/routing': [
    ['server/routing/*'],
    ['server/routing/lexical', 'server/routing/names', 'server/routing/usage'],
    ['server/routing/words'],
    ['server/routing/port.ts']
  ],
  'server/connections': [
    ['server/connections/*'],
    ['server/connections/local', 'server/connections/remote', 'server/connections/asking'],
    ['server/connections/wire']
  ],
  'server/calls': [['server/calls/*', 'server/calls/tracing']],
  'server/sandbox': [
    ['server/sandbox/docker/*', 'server/sandbox/engine-proxy', 'server/sandbox/kubernetes'],
    ['server/sandbox/docker/servers'],
    ['server/sandbox/servers'],
    ['server/sandbox/docker/image', 'server/sandbox/egress'],
    ['server/sandbox/docker/engine', 'server/sandbox/kubernetes/api'],
    ['server/sandbox/workspace'],
    ['server/sandbox/*']
  ],
  'server/models': [
    ['server/models/local'],
    ['server/models/create-models.ts', 'server/models/embedder.ts'],
    ['server/models/detection'],
    ['server/models/demo'],
    ['server/models/step'],
    ['server/models/providers'],
    ['server/models/*']
  ],
  'server/storage': [
    ['server/storage/object-checkpoints', 'server/storage/migrate'],
    [
      'server/storage/checkpoints',
      'server/storage/embedded',
      'server/storage/redis',
      'server/storage/objects',
      'server/storage/format'
    ],
    ['server/storage/backup', 'server/storage/*']
  ],
  'server/catalog': [['server/catalog/listing'], ['server/catalog/import'], ['server/catalog/*']],
  'workspace-server': [
    ['workspace-server/main.ts'],
    ['workspace-server/create-server.ts'],
    ['workspace-server/tools', 'workspace-server/checkpoint'],
    ['workspace-server/command', 'workspace-server/process', 'workspace-server/code'],
    ['workspace-server/files'],
    ['workspace-server/tools/system-error.ts', 'workspace-server/tools/tool-arguments.ts'],
    ['workspace-server/tools/tool.ts'],
    ['workspace-server/*']
  ],
  web: [
    ['web/main.ts'],
    ['web/App.vue'],
    ['web/PageDialogs.vue'],
    ['web/components'],
    ['web/composables', 'web/missing-parts.ts'],
    ['web/stores'],
    ['web/attachments', 'web/file-drafts.ts'],
    ['web/text', 'web/diagrams'],
    ['web/*', 'web/components/shared/icons.ts']
  ]
}

/** Functions of more than 60 lines, besides Pinia's stores. Split one and remove its name; add none. */
const LONG_FUNCTIONS = [
  'createApp',
  'createConceptReader',
  'createCore',
  'createDockerEngine',
  'createGains',
  'createGatewayApp',
  'createLexicalIndex',
  'createToolCorpus',
  'createUsageStore',
  'loadGateway',
  'openAudit',
  'openStoredUsage',
  'prelude',
  'redisSessionStore',
  'syncedTranscript',
  'useDecision',
  'useRewindPlan',
  'useVirtualRows',
  'useWaitingCards'
]

/** Packages that may be imported in certain rooms only. */
const FENCES: [pattern: RegExp, rooms: string[]][] = [
  [/^dockerode$/, ['server/sandbox/docker']],
  [/^@kubernetes\//, ['server/sandbox/kubernetes']],
  [/^ioredis$/, ['server/storage/redis']],
  [/^(@aws-sdk|@smithy)\//, ['server/storage/objects']],
  [/^(ai|@ai-sdk\/.*)$/, ['server/models']],
  [/^@modelcontextprotocol\//, ['server/connections', 'server/gateway', 'server/sandbox', 'workspace-server']],
  [/^(fastify|@fastify\/.*)$/, ['server/http']],
  [/^@opentelemetry\//, ['server/calls/tracing']],
  [/^prom-client$/, ['server/http']],
  [/^node:sqlite$/, ['server/storage/embedded']]
]

interface SourceFile {
  path: string
  text: string
  imports: string[]
}

const files = ['contract', 'server', 'workspace-server', 'web'].flatMap((folder) => sources(folder))
const manifests = ['deploy', '.github'].flatMap((folder) => sources(folder, /\.ya?ml$/))
const shipped = files.filter(({ path }) => !/(\.(test|contract|model|fixture)|\/fake-[a-z-]+)\.ts$/.test(path))

function sources(folder: string, suffix = /\.(ts|vue)$/): SourceFile[] {
  const dir = join(root, folder)
  let names: string[]
  try {
    names = readdirSync(dir, { recursive: true, encoding: 'utf8' })
  } catch {
    return []
  }
  return names
    .filter((name) => suffix.test(name))
    .map((name) => {
      const text = readFileSync(join(dir, name), 'utf8')
      const imports = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] ?? '')
      return { path: join(folder, name), text, imports }
    })
}

const lines = ({ text }: SourceFile) => text.split('\n').length - 1
const within = (path: string, room: string) =>
  room.endsWith('/*') ? dirname(path) === room.slice(0, -2) : path === room || path.startsWith(`${room}/`)
/** The longest match: a listed file or subfolder takes precedence over its folder. */
const roomOf = (path: string, ranks: string[][]) =>
  ranks
    .flat()
    .filter((room) => within(path, room))
    .toSorted((a, b) => b.length - a.length)[0]
const rankOf = (path: string, ranks: string[][]) =>
  ranks.findIndex((rooms) => rooms.includes(roomOf(path, ranks) ?? ''))
const local = ({ path, imports }: SourceFile) =>
  imports.filter((name) => name.startsWith('.')).map((name) => relative(root, resolve(root, dirname(path), name)))

/** The names of the functions of more than 60 lines. One without a name has that of the function it is given to. */
function longFunctions({ text }: SourceFile): string[] {
  const script = /<script[^>]*>([\s\S]*?)<\/script>/.exec(text)?.[1] ?? text
  const source = ts.createSourceFile('source.ts', script, ts.ScriptTarget.Latest, true)
  const lineAt = (position: number) => source.getLineAndCharacterOfPosition(position).line
  const names: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && lineAt(node.end) - lineAt(node.getStart(source)) >= 60) {
      const { name, parent } = node
      const given = ts.isCallExpression(parent)
        ? parent.expression
        : ts.isVariableDeclaration(parent)
          ? parent.name
          : parent
      names.push((name ?? given).getText(source))
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return names
}

/** Every group of files that import each other in a circle. */
function cycles(imports: Map<string, string[]>): string[][] {
  const settled = new Set<string>()
  const found: string[][] = []
  const visit = (path: string, trail: string[]): void => {
    const start = trail.indexOf(path)
    if (start !== -1) found.push(trail.slice(start))
    if (start !== -1 || settled.has(path)) return
    for (const target of imports.get(path) ?? []) visit(target, [...trail, path])
    settled.add(path)
  }
  for (const path of imports.keys()) visit(path, [])
  return found
}

describe('the architecture', () => {
  it('finds its files', () => {
    expect(shipped.length).toBeGreaterThan(30)
  })

  it.each([['the server', RANKS] as const, ...Object.entries(INSIDE)])(
    'imports downwards only in %s',
    (room, ranks) => {
      const inside = room === 'the server' ? shipped : shipped.filter(({ path }) => within(path, room))
      const wrong = inside.flatMap((file) =>
        local(file)
          .filter((target) => roomOf(target, ranks) !== undefined)
          .filter((target) => roomOf(target, ranks) !== roomOf(file.path, ranks))
          .filter((target) => rankOf(target, ranks) <= rankOf(file.path, ranks))
          .map((target) => `${file.path} imports ${target}`)
      )
      expect(wrong).toEqual([])
    }
  )

  it.each(Object.entries(INSIDE))('gives every file of %s a rank', (room, ranks) => {
    const without = shipped.filter(({ path }) => within(path, room) && roomOf(path, ranks) === undefined)
    expect(without.map(({ path }) => path)).toEqual([])
  })

  it('has no import cycles, not even of types', () => {
    expect(cycles(new Map(shipped.map((file) => [file.path, local(file)])))).toEqual([])
  })

  it('has no folder with too many files', () => {
    const counts = Map.groupBy([...files, ...sources('tests')], ({ path }) => dirname(path))
    const full = [...counts].filter(([, inside]) => inside.length > 25)
    expect(full.map(([folder, inside]) => `${folder}: ${inside.length}`)).toEqual([])
  })

  it('lets only app and cli know the settings', () => {
    const wrong = shipped.filter(
      (file) => !/^server\/(cli|config|app)\//.test(file.path) && local(file).some((t) => within(t, 'server/config'))
    )
    expect(wrong.map(({ path }) => path)).toEqual([])
  })

  // Passing the whole environment to a child does not count as reading it.
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

  it('lets web import only contract', () => {
    const wrong = shipped.filter(
      (file) => within(file.path, 'web') && local(file).some((t) => !/^(web|contract)\//.test(t))
    )
    expect(wrong.map(({ path }) => path)).toEqual([])
  })

  // The console has the colours of a terminal, whatever the theme.
  it('names colours and sizes of letters in web/tokens.css, not in the components', () => {
    const own = shipped
      .filter(({ path }) => /^web\/(?!components\/console\/).*\.vue$/.test(path))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/#[\da-f]{6}\b|text-\[[\d.]+px\]/gi)].map(([found]) => `${path}: ${found}`)
      )
    expect(own).toEqual([])
  })

  it('lets contract import only zod', () => {
    const inside = shipped.filter(({ path }) => within(path, 'contract'))
    const packages = inside.flatMap(({ imports }) => imports.filter((name) => !name.startsWith('.') && name !== 'zod'))
    const outside = inside.flatMap(local).filter((target) => !within(target, 'contract'))
    expect([...packages, ...outside]).toEqual([])
  })

  it('has no file that is too long', () => {
    const limitOf = (file: SourceFile) => (!shipped.includes(file) ? 400 : file.path.endsWith('.vue') ? 200 : 350)
    const long = [...files, ...sources('tests')].filter((file) => lines(file) > limitOf(file))
    expect(long.map((file) => `${file.path}: ${lines(file)}`)).toEqual([])
  })

  it('has no tiny file with only one importer', () => {
    const importers = Map.groupBy(shipped.flatMap(local), (target) => target)
    const tiny = shipped.filter((file) => lines(file) < 15 && importers.get(file.path)?.length === 1)
    expect(tiny.map(({ path }) => path)).toEqual([])
  })

  // A shorter timeout proves nothing more, and fails on a busy machine.
  it('sets no timeout shorter than the common one', () => {
    const short = [...files, ...sources('tests')].flatMap(({ path, text }) =>
      [...text.matchAll(/\b(?:waitFor|waitUntil|poll|it|test|describe)\b.*\btimeout: ([\d_]+)/g)]
        .filter(([, ms = '']) => Number(ms.replaceAll('_', '')) < PATIENCE_MS)
        .map(([line]) => `${path}: ${line}`)
    )
    expect(short).toEqual([])
  })

  it('begins no comment with a fragment', () => {
    const all = [
      ...files,
      ...['tests', 'bench', 'scripts', 'images'].flatMap((folder) => sources(folder)),
      ...manifests
    ]
    const fragments = all.flatMap(({ path, text }) =>
      [...text.matchAll(/^\s*(?:\/\*\*|\/\/|\*|#|<!--) (?:Of|Who|Whom|Whose|Whoever|What) .*/gm)].map(
        ([line]) => `${path}: ${line.trim()}`
      )
    )
    expect(fragments).toEqual([])
  })

  it('has no new function of more than 60 lines', () => {
    const long = shipped.filter((file) => lines(file) > 60).flatMap(longFunctions)
    expect(long.filter((name) => name !== 'defineStore').toSorted()).toEqual(LONG_FUNCTIONS)
  })

  it('has no folder or file called utils, helpers or the like', () => {
    expect(
      files.map(({ path }) => path).filter((path) => /(^|\/)(utils?|helpers?|services?|index)(\.|\/)/.test(path))
    ).toEqual([])
  })
})
