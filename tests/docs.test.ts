import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { SETTINGS } from '../server/config/settings.ts'

const root = resolve(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const markdown = ['README.md', 'images/README.md', ...below('docs', '.md')]
const sources = below('server', '.ts').filter((path) => !/\.(test|contract|model|fixture)\.ts$/.test(path))
const fileNames = new Set(
  ['server', 'workspace-server', 'contract', 'web', 'scripts', 'images']
    .flatMap((dir) => below(dir, ''))
    .map((path) => basename(path))
)

function below(dir: string, ending: string): string[] {
  if (!existsSync(join(root, dir))) return []
  return readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(dir, name))
}

/** Every code that an AppError or a notice is made with. */
function codes(): Set<string> {
  const found = new Set<string>()
  for (const path of sources) {
    for (const [, code] of read(path).matchAll(/new AppError\(\s*'[a-z-]+',\s*'([a-z_]+)'/g)) if (code) found.add(code)
  }
  return found
}

describe('the papers', () => {
  it.each(markdown)('%s names only paths that exist', (file) => {
    const names = [...read(file).matchAll(/`([a-z][\w./-]*)`/g)].map(([, name]) => name ?? '')
    const paths = names.filter((name) =>
      /^(bin|bench|contract|docs|images|scripts|server|tests|web|workspace-server)\//.test(name)
    )
    const files = names.filter((name) => /^[a-z][a-z-]*\.(ts|sh|md)$/.test(name))
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
    expect(files.filter((name) => !fileNames.has(name))).toEqual([])
  })

  it('document every error code', () => {
    const documented = read('docs/ERRORS.md')
    expect(codes().size).toBeGreaterThan(50)
    expect([...codes()].filter((code) => !documented.includes(`\`${code}\``))).toEqual([])
  })

  it('document every setting', () => {
    const readme = read('README.md')
    expect(Object.keys(SETTINGS).filter((name) => !readme.includes(`\`${name}\``))).toEqual([])
  })
})
