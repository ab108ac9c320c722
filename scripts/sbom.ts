/**
 * Writes dist/sbom.json, the bill of materials of the package, in CycloneDX. For npm, bundled packages and test tools are both
 * development dependencies, so npm's list is reduced to what the bundles contain and what is installed.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readHeadings } from './third-party-notices.ts'

interface Component {
  'bom-ref': string
  name: string
  version: string
  scope?: string
  type: string
  properties?: { name: string; value: string }[]
}

interface Bom {
  metadata: { component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

const DEV = 'cdx:npm:package:development'
const isDev = ({ properties = [] }: Component) => properties.some(({ name }) => name === DEV)

export function writeSbom(root: string): number {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--include', 'dev']
  const said = execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 2 ** 20, timeout: 120_000 })
  const bundled = new Set(readHeadings(readFileSync(join(root, 'dist/THIRD-PARTY-NOTICES.txt'), 'utf8')))
  const bom = shipped(JSON.parse(said), bundled)
  writeFileSync(join(root, 'dist/sbom.json'), `${JSON.stringify(bom, null, 2)}\n`)
  return bom.components.length
}

export function shipped(bom: Bom, bundled: Set<string>): Bom {
  const components = bom.components
    .filter((each) => !isDev(each) || bundled.has(`${each.name}@${each.version}`))
    .map(({ properties = [], ...each }) => {
      return { ...each, scope: 'required', properties: properties.filter(({ name }) => name !== DEV) }
    })
  const kept = new Set([bom.metadata.component, ...components].map((each) => each['bom-ref']))
  const dependencies = bom.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => kept.has(other)) }))
  // npm calls it by the folder that it is in.
  const component = { ...bom.metadata.component, name: 'mcp-orchestrator', type: 'application' }
  return { ...bom, metadata: { ...bom.metadata, component }, components, dependencies }
}

if (import.meta.main) {
  const count = writeSbom(join(import.meta.dirname, '..'))
  console.error(`sbom: dist/sbom.json, ${count} packages`)
}
