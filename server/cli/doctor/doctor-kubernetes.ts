import { plural } from '../../lib/plural.ts'
import type { KubernetesEngine } from '../../sandbox/kubernetes/kubernetes-engine.ts'
import type { Check, Found } from './doctor-servers.ts'

const MANIFESTS = 'apply the manifests in deploy/kubernetes'

/** Checks that only a cluster has. Returns whether sandboxes can be created. */
export async function checkCluster(engine: KubernetesEngine, check: Check, image: string): Promise<boolean> {
  const mayCreate = await check('rights', () => describeRights(engine))
  await check('policy', () => describePolicies(engine))
  await check('quota', () => describeQuotas(engine))
  await check('image', async () => describeImage(image))
  return mayCreate
}

async function describeRights({ api }: KubernetesEngine): Promise<string> {
  const { NEEDED_RIGHTS } = await import('../../sandbox/kubernetes/api/cluster-api.ts')
  const allowed = await Promise.all(NEEDED_RIGHTS.map((right) => api.may(right)))
  const missing = NEEDED_RIGHTS.filter((_, index) => !allowed[index]).map(
    ({ verb, resource, subresource }) => `${verb} ${subresource ? `${resource}/${subresource}` : resource}`
  )
  if (missing.length === 0) return `all that are needed in the namespace ${api.namespace}`
  throw new Error(`The service account may not: ${missing.join(', ')} (namespace ${api.namespace}): ${MANIFESTS}.`)
}

/** A policy is only a promise; the check of the limits tests from inside that a pod reaches nothing. */
async function describePolicies({ api }: KubernetesEngine): Promise<Found> {
  const policies = await api.policies()
  const closing = policies.find(({ spec }) => {
    const isForAll = Object.keys(spec?.podSelector ?? {}).length === 0
    return isForAll && spec?.policyTypes?.includes('Egress') && spec.egress === undefined
  })
  if (closing) return `${closing.metadata?.name} closes the namespace ${api.namespace}`
  return { warn: `No NetworkPolicy closes all pods of the namespace ${api.namespace}: ${MANIFESTS}.` }
}

async function describeQuotas({ api }: KubernetesEngine): Promise<Found> {
  const quotas = await api.quotas()
  if (quotas.length === 0)
    return { warn: `The namespace ${api.namespace} has no ResourceQuota, so MAX_SESSIONS alone limits its pods.` }
  const used = quotas.flatMap(({ status }) =>
    Object.entries(status?.hard ?? {}).map(([name, hard]) => `${name} ${status?.used?.[name] ?? '?'} of ${hard}`)
  )
  return `${plural(quotas.length, 'quota')}: ${used.join(', ') || 'not counted yet'}`
}

function describeImage(image: string): Found {
  if (image.includes('@sha256:')) return image
  return { warn: `${image} has no digest, so each node may have another one: name it as NAME@sha256:….` }
}
