/**
 * Collects the licences of all code inside the bundles and the page, which must be distributed with it. Uses the modules that were
 * really bundled, not the list of dependencies.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface BundledPackage {
  name: string
  version: string
  license: string
  dir: string
}

/** Their styles come from a plug-in, so they don't appear among the modules. */
const THROUGH_PLUGINS = ['tailwindcss']

const MODULE = /^(.*\/node_modules\/((?:@[^/]+\/)?[^/]+))\//
const LEGAL_FILE = /^(licen[cs]e|notice|copying)([.-][\w.-]+)?$/i

/** The packages of the modules, by name and version. */
export function packagesOf(modules: Iterable<string>, root: string): BundledPackage[] {
  const dirs = new Set(THROUGH_PLUGINS.map((name) => join(root, 'node_modules', name)))
  for (const id of modules) {
    const dir = MODULE.exec(id.replace(/^\0/, ''))?.[1]
    if (dir !== undefined) dirs.add(dir)
  }
  const found = new Map<string, BundledPackage>()
  for (const dir of dirs) {
    const { name, version, license } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'))
    found.set(`${name}@${version}`, { name, version, license: license ?? 'not said', dir })
  }
  return [...found.values()].sort((a, b) => (`${a.name}@${a.version}` < `${b.name}@${b.version}` ? -1 : 1))
}

/** Each heading is `name@version (licence)`; the bill of materials is made from these headings. */
export function noticesText(packages: BundledPackage[]): string {
  const parts = packages.map((each) => {
    const heading = `${each.name}@${each.version} (${each.license})`
    return `${heading}\n${'-'.repeat(heading.length)}\n${legalText(each.dir)}`
  })
  const first = `MCP Orchestrator's bundles contain code of these ${packages.length} packages, under their own licences.`
  return `${[first, ...parts].join('\n\n')}\n`
}

export function readHeadings(notices: string): string[] {
  return [...notices.matchAll(/^(\S+@\d\S*) \(.*\)\n-{3,}$/gm)].map(([, id]) => id ?? '')
}

function legalText(dir: string): string {
  const files = readdirSync(dir).filter((name) => LEGAL_FILE.test(name))
  const texts = files.map((name) => readFileSync(join(dir, name), 'utf8').replaceAll('\r\n', '\n').trim())
  return texts.join('\n\n') || 'The package has no licence file; its package.json names the licence above.'
}
