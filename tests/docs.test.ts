import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMMAND_SCHEMAS } from '../contract/commands.ts'
import { EVENT_SCHEMAS } from '../contract/events.ts'
import { ENTRY_KEYS } from '../server/catalog/read-entry.ts'
import { SANDBOX_KEYS } from '../server/catalog/read-sandbox.ts'
import { readRegistry } from '../server/catalog/registry.ts'
import { SETTINGS } from '../server/config/settings.ts'

const root = resolve(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const markdown = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'images/README.md', ...below('docs', '.md')]
const sources = below('server', '.ts').filter((path) => !/\.(test|contract|model|fixture)\.ts$/.test(path))
const fileNames = new Set(
  ['server', 'workspace-server', 'contract', 'web', 'scripts', 'images', 'tests', 'docs', 'bench']
    .flatMap((dir) => below(dir, ''))
    .concat(readdirSync(root))
    .map((path) => basename(path))
)

function below(dir: string, ending: string): string[] {
  if (!existsSync(join(root, dir))) return []
  return readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(dir, name))
}

/** Every code of an AppError or a notice. */
function codes(): Set<string> {
  const found = new Set<string>()
  for (const path of sources) {
    for (const start of [/new AppError\(\s*'[a-z-]+',\s*/, /\bcode: /, /notice\((?:sessionId, )?/])
      for (const [, code] of read(path).matchAll(new RegExp(`${start.source}'([a-z_]+)'`, 'g')))
        if (code) found.add(code)
  }
  return found
}

/** The code blocks and code spans of a file, in which a command name really means the command. */
function codeIn(file: string): string {
  const text = read(file)
  const blocks = [...text.matchAll(/^ {4}.*$|^```[\s\S]*?^```/gm)].map(([block]) => block)
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => span ?? '')
  return [...blocks, ...spans].join('\n')
}

function wordsAfter(start: RegExp, file: string): string[] {
  const words = [...codeIn(file).matchAll(new RegExp(`${start.source} ([a-z][a-z:-]*)`, 'g'))]
  return words.map(([, word]) => word ?? '')
}

/** The anchors that GitHub creates from headings. */
function anchors(path: string): Set<string> {
  const headings = [...readFileSync(path, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading ?? '')
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-')
    )
  )
}

/** Every three words in a row, without numbers, short quoted names and placeholders. */
function triples(text: string): string[] {
  const words = text.replace(/\$\{[^}]*\}|…|"[^"]{1,12}"|\d+/g, ' # ').match(/[\w']+|#/g) ?? []
  const rows = words.slice(2).map((_, at) => words.slice(at, at + 3).join(' '))
  return rows.filter((row) => !row.includes('#'))
}

/** The `name: '…'` of each command of the command line. */
function commands(): string[] {
  return below('server/cli', '.ts').flatMap((path) =>
    [...read(path).matchAll(/: Command = \{\s*name: '([a-z-]+)'/g)].map(([, name]) => name ?? '')
  )
}

describe('the docs', () => {
  it('are in the package if the program refers to them', () => {
    const pack = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
      encoding: 'utf8'
    })
    const [{ files }] = JSON.parse(pack)
    const packed = new Set(files.map(({ path }: { path: string }) => path))
    const shipped = [...sources, ...below('web', '.ts'), ...below('web', '.vue'), ...below('contract', '.ts')]
    const named = shipped.flatMap((path) => read(path).match(/\b(docs|images)\/[\w./-]+\.md\b|\bREADME\.md\b/g) ?? [])
    expect(named).toEqual(expect.arrayContaining(['docs/guides/clients.md', 'images/README.md', 'docs/ERRORS.md']))
    expect([...new Set(named)].filter((path) => !packed.has(path))).toEqual([])
    // Links between the pages must also work in the package.
    const pages = [...packed].filter((path): path is string => /^docs\/.*\.md$/.test(String(path)))
    const links = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\(([\w./-]+\.md)(#[\w-]*)?\)/g)].map(([, to = '']) => join(dirname(page), to))
    )
    expect(
      [...new Set(links)].filter((path) => !packed.has(path) && path !== 'CONTRIBUTING.md' && path !== 'CHANGELOG.md')
    ).toEqual([])
  })

  it.each(markdown)('%s names only paths that exist', (file) => {
    const names = [...read(file).matchAll(/`([a-z][\w./-]*)`/g)].map(([, name]) => name ?? '')
    const paths = names.filter((name) =>
      /^(bin|bench|contract|docs|images|scripts|server|tests|web|workspace-server)\//.test(name)
    )
    const files = names.filter((name) => /^[a-z][a-z-]*\.(ts|sh|md)$/.test(name))
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
    expect(files.filter((name) => !fileNames.has(name))).toEqual([])
  })

  it.each(markdown)('%s has no broken links', (file) => {
    const links = [...read(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? '')
    const relative = links.filter((target) => !/^[a-z]+:/.test(target))
    const broken = relative.filter((target) => {
      const [path = '', anchor] = target.split('#')
      const found = path === '' ? join(root, file) : resolve(root, dirname(file), path)
      return !existsSync(found) || (anchor !== undefined && !anchors(found).has(anchor))
    })
    expect(broken).toEqual([])
  })

  it.each(markdown)('%s names only commands and scripts that exist', (file) => {
    const known = commands()
    expect(known).toContain('serve')
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
    expect(wordsAfter(/mcp-orchestrator/, file).filter((word) => !known.includes(word))).toEqual([])
    const run = [...wordsAfter(/npm run(?: -s)?/, file), ...wordsAfter(/npm(?= (?:test|start))/, file)]
    expect(run.filter((name) => scripts[name] === undefined)).toEqual([])
  })

  it('link every guide, decision and page from the README or the architecture', () => {
    const start = ['README.md', 'docs/ARCHITECTURE.md']
    const linked = new Set(
      start.flatMap((file) =>
        [...read(file).matchAll(/\]\(([^)\s#]+)/g)].map(([, target]) => join(dirname(file), target ?? ''))
      )
    )
    expect(below('docs', '.md').filter((path) => !linked.has(path) && !start.includes(path))).toEqual([])
  })

  it('document every error code', () => {
    const documented = read('docs/ERRORS.md')
    expect(codes().size).toBeGreaterThan(50)
    expect([...codes()].filter((code) => !documented.includes(`\`${code}\``))).toEqual([])
  })

  it('quote error messages as the code writes them', () => {
    const known = new Set([...sources, 'bin/mcp-orchestrator'].flatMap((path) => triples(read(path))))
    const quotes = [...read('docs/guides/troubleshooting.md').matchAll(/\*\*`([^`]+)`/g)].map(([, quote = '']) => quote)
    // The code puts some messages together from parts, so half of the triples is enough.
    const differs = (quote: string) => {
      const rows = triples(quote.split('it said:')[0] ?? '')
      return rows.length > 1 && rows.filter((row) => known.has(row)).length < rows.length / 2
    }
    expect(quotes.length).toBeGreaterThan(30)
    expect(quotes.filter(differs)).toEqual([])
  })

  it('document every setting', () => {
    const readme = read('README.md')
    expect(Object.keys(SETTINGS).filter((name) => !readme.includes(`\`${name}\``))).toEqual([])
  })

  it('document every command and event of the socket', () => {
    const guide = read('docs/guides/socket-api.md')
    const names = [...Object.keys(COMMAND_SCHEMAS), ...Object.keys(EVENT_SCHEMAS)]
    expect(names.filter((name) => !guide.includes(`\`${name}`))).toEqual([])
  })

  it('document every key of mcp.json', () => {
    const guide = read('docs/guides/mcp-json.md')
    expect([...ENTRY_KEYS, ...SANDBOX_KEYS].filter((key) => !guide.includes(`\`${key}\``))).toEqual([])
  })

  it.each(markdown)('%s shows JSON that can be pasted', (file) => {
    for (const [, block = ''] of read(file).matchAll(/```json\n([\s\S]*?)```/g)) {
      const shown: unknown = JSON.parse(block)
      if (!/"(mcpS|s)ervers"/.test(block)) continue
      expect(readRegistry(JSON.stringify(shown), file).problems).toEqual([])
    }
  })
})
