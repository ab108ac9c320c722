/** Checks the manifests in deploy/kubernetes against what the adapter calls and what the settings know. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { SETTINGS } from '../../server/config/settings.ts'
import { isAppError } from '../../server/lib/errors.ts'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { NEEDED_RIGHTS } from '../../server/sandbox/kubernetes/api/cluster-api.ts'
import { startBareCluster } from '../fixtures/kubernetes/bare-pods.ts'
import { serveFakeWorkspace } from '../fixtures/kubernetes/fake-server.ts'
import { NAMESPACE, type TestCluster } from '../fixtures/kubernetes/kubernetes-sandboxes.ts'
import { checkRestricted } from '../fixtures/kubernetes/pod-security.ts'
import type { RoleRule } from '../fixtures/kubernetes/stand-in-cluster.ts'

interface Manifest {
  kind: string
  metadata: { name: string; namespace?: string; labels?: Record<string, string> }
  rules?: RoleRule[]
  spec?: Record<string, unknown>
}

const root = join(packageRoot(), 'deploy/kubernetes')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const FOLDERS = ['base', ...readdirSync(join(root, 'overlays')).map((name) => `overlays/${name}`)]
interface Kustomization {
  resources: string[]
  patches?: { path: string }[]
  configMapGenerator?: { name: string; literals?: string[]; files?: string[] }[]
}
const kustomization = (folder: string): Kustomization => parse(read(`${folder}/kustomization.yaml`))
const documents = (path: string) => parseAllDocuments(read(path)).map((document): Manifest => document.toJS())
const manifestsOf = (folder: string) =>
  kustomization(folder)
    .resources.filter((path) => path.endsWith('.yaml'))
    .flatMap((path) => documents(`${folder}/${path}`))
const manifests = FOLDERS.flatMap(manifestsOf)
const patchOf = (folder: string) => documents(`${folder}/${kustomization(folder).patches?.[0]?.path}`)[0]
const literalsOf = (folder: string) =>
  (kustomization(folder).configMapGenerator ?? [])
    .flatMap(({ literals = [] }) => literals)
    .map((text) => text.split('=')[0] ?? '')
const only = (kind: string, name?: string) => {
  const found = manifests.filter((each) => each.kind === kind && (name === undefined || each.metadata.name === name))
  expect(found).toHaveLength(1)
  return found[0] as Manifest
}
const verbs = (rules: RoleRule[]) =>
  rules.flatMap(({ apiGroups, resources, verbs: all }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => all.map((verb) => `${verb} ${group}/${resource}`)))
  )

interface PodTemplate {
  terminationGracePeriodSeconds?: number
  topologySpreadConstraints?: unknown[]
  volumes?: unknown[]
  containers?: { lifecycle?: { preStop?: { sleep?: { seconds?: number } } } }[]
}
const podOf = (spec: Manifest['spec'] = {}) => (spec.template as { spec: PodTemplate }).spec

describe('the Role', () => {
  let test: TestCluster
  afterEach(() => test?.stop())

  it('has exactly the rights that doctor checks', () => {
    const needed = NEEDED_RIGHTS.map(({ verb, group, resource, subresource }) => {
      return `${verb} ${group}/${subresource ? `${resource}/${subresource}` : resource}`
    })
    expect(verbs(only('Role').rules ?? []).sort()).toEqual([...needed].sort())
  })

  it('is enough for all calls of the adapter, and each of its verbs is used', async () => {
    const rules = only('Role').rules ?? []
    test = await startBareCluster({ rules, exec: serveFakeWorkspace })
    const engine = test.engine({ spares: 1, alone: 'one' })
    const id = await engine.create(test.owner)
    await expect.poll(() => test.cluster.pods(NAMESPACE)).toHaveLength(2)
    await engine.create(test.owner)
    await engine.connect(id, 1)
    await Promise.all([
      engine.inspect(id),
      engine.list('x'),
      engine.status(),
      engine.api.events('x'),
      engine.api.policies(),
      engine.api.quotas()
    ])
    await engine.remove(id)
    await engine.close()
    expect([...new Set(test.cluster.calls)].sort()).toEqual(verbs(rules).sort())
  })

  it('allows nothing else', async () => {
    test = await startBareCluster({ rules: only('Role').rules ?? [] })
    const paths = [
      ['GET', `/api/v1/namespaces/${NAMESPACE}/secrets`],
      ['GET', `/api/v1/namespaces/${NAMESPACE}/pods/x/log`],
      ['POST', `/api/v1/namespaces/${NAMESPACE}/pods/x/ephemeralcontainers`],
      ['PUT', `/api/v1/namespaces/${NAMESPACE}/pods/x`],
      ['POST', `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/networkpolicies`],
      ['DELETE', `/apis/networking.k8s.io/v1/namespaces/${NAMESPACE}/networkpolicies/deny-all`],
      ['GET', '/api/v1/nodes']
    ]
    for (const [method = '', path = ''] of paths) {
      const headers = { authorization: 'Bearer secret-token' }
      const { status } = await fetch(`${test.cluster.address}${path}`, { method, headers })
      expect(status, `${method} ${path}`).toBe(403)
    }
  })

  it('is named in a sentence if it is not applied', async () => {
    test = await startBareCluster({ rules: [] })
    const error = await test
      .engine()
      .create(test.owner)
      .catch((caught) => caught)
    expect(isAppError(error, 'engine_forbidden') && error.message).toContain('deploy/kubernetes')
  })
})

describe('the manifests', () => {
  it('put only the Role and its binding, the policy and the quota beside the sandboxes', () => {
    const beside = manifests.filter(({ metadata }) => metadata.namespace === 'mcp-sandboxes').map(({ kind }) => kind)
    expect(beside.sort()).toEqual(['NetworkPolicy', 'ResourceQuota', 'Role', 'RoleBinding'])
    expect(only('NetworkPolicy', 'deny-all').spec).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
    const labels = manifests.filter(({ kind }) => kind === 'Namespace').map(({ metadata }) => metadata.labels ?? {})
    for (const label of labels) expect(label['pod-security.kubernetes.io/enforce']).toBe('restricted')
  })

  it('have pods that satisfy the restricted standard', () => {
    const workloads = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
    expect(workloads).toHaveLength(2)
    for (const { metadata, spec } of workloads) {
      const template = spec?.template as { spec: Parameters<typeof checkRestricted>[1] }
      expect(() => checkRestricted(metadata.name, template.spec)).not.toThrow()
    }
  })

  it('name settings that exist, and files that exist', () => {
    const names = [...read('base/orchestrator.yaml').matchAll(/name: ([A-Z][A-Z_]+)/g)].map(([, name = '']) => name)
    const literals = FOLDERS.flatMap(literalsOf)
    expect(names.length + literals.length).toBeGreaterThan(3)
    for (const name of [...names, ...literals]) expect(Object.keys(SETTINGS)).toContain(name)
    for (const folder of FOLDERS) {
      const { resources, patches = [], configMapGenerator = [] } = kustomization(folder)
      const files = configMapGenerator.flatMap((each) => each.files ?? [])
      for (const path of [...resources, ...patches.map((each) => each.path), ...files])
        expect(existsSync(join(root, folder, path)), `${folder}/${path}`).toBe(true)
    }
  })

  it('of one instance keep its data over an update, and let it end before the next one starts', () => {
    const { spec } = patchOf('overlays/try-out') ?? {}
    expect(spec).toMatchObject({ strategy: { type: 'Recreate' } })
    const claim = manifestsOf('overlays/try-out').find(({ kind }) => kind === 'PersistentVolumeClaim')
    const { volumes } = podOf(spec)
    expect(volumes).toContainEqual(
      expect.objectContaining({ name: 'data', persistentVolumeClaim: { claimName: claim?.metadata.name } })
    )
    // One instance that may not be evicted would block every drain of a node.
    const kinds = [...manifestsOf('base'), ...manifestsOf('overlays/try-out')].map(({ kind }) => kind)
    expect(kinds).not.toContain('PodDisruptionBudget')
    expect(only('Deployment').spec?.replicas).toBe(1)
  })

  it('of two instances share what they need, on two nodes, and clients are believed from the ingress only', () => {
    const folder = 'overlays/replicas'
    expect(literalsOf(folder)).toEqual(expect.arrayContaining(['CHECKPOINT_STORE', 'MCP_CONFIG', 'TRUST_PROXY']))
    expect(read(`${folder}/kustomization.yaml`)).toContain('REDIS_URL=')
    const { spec } = patchOf(folder) ?? {}
    expect(spec).toMatchObject({ replicas: 2, strategy: { rollingUpdate: { maxUnavailable: 0 } } })
    const { topologySpreadConstraints: spread, volumes } = podOf(spec)
    expect(spread).toMatchObject([{ topologyKey: 'kubernetes.io/hostname', matchLabelKeys: ['pod-template-hash'] }])
    expect(volumes).toContainEqual({ name: 'servers', configMap: { name: 'mcp-servers' } })
    const policy = manifestsOf(folder).find(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'mcp-orchestrator'
    )
    expect(policy?.spec).toMatchObject({ policyTypes: ['Ingress'] })
    expect(literalsOf('base')).not.toContain('TRUST_PROXY')
    expect(read('base/orchestrator.yaml')).not.toContain('TRUST_PROXY')
  })

  it('name no secret that is not a setting', () => {
    const guide = readFileSync(join(packageRoot(), 'docs/guides/kubernetes.md'), 'utf8')
    const named = [...FOLDERS.map((folder) => read(`${folder}/kustomization.yaml`)), guide].flatMap((text) =>
      [...text.matchAll(/([A-Z][A-Z0-9_]*)=…|\| [^|\n]+ \| (`[A-Z0-9_`, ]+) \|/g)].flatMap(([, one, row = '']) => [
        ...(one ? [one] : []),
        ...[...row.matchAll(/[A-Z][A-Z0-9_]*/g)].map(([name]) => name)
      ])
    )
    expect(named).toEqual(expect.arrayContaining(['AUTH_TOKEN', 'AWS_SECRET_ACCESS_KEY']))
    expect(named.filter((name) => !(name in SETTINGS))).toEqual([])
  })

  it('give a shutdown more time than it takes', () => {
    const { terminationGracePeriodSeconds: grace, containers } = podOf(only('Deployment').spec)
    const pause = containers?.[0]?.lifecycle?.preStop?.sleep?.seconds ?? 0
    // Load balancers need a moment to learn that it ends.
    expect(pause).toBeGreaterThanOrEqual(5)
    expect(grace).toBeGreaterThan(30 + pause)
  })
})
