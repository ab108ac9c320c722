/** Tests the rights of the account of TEST_KUBECONFIG on a real cluster. `manifests.test.ts` tries the same on the stand-in. */
import {
  ApiException,
  AuthorizationV1Api,
  CoreV1Api,
  NetworkingV1Api,
  RbacAuthorizationV1Api
} from '@kubernetes/client-node'
import { describe, expect, it } from 'vitest'
import { NEEDED_RIGHTS } from '../../server/sandbox/kubernetes/api/cluster-api.ts'
import { loadKubeConfig } from '../../server/sandbox/kubernetes/api/kube-config.ts'
import { realCluster, whichCluster } from '../fixtures/kubernetes/which-cluster.ts'

/** Everyone may ask about their own rights. */
const EVERYONES = /^create (authorization|authentication)\.k8s\.io\/selfsubject/
const real = realCluster(process.env)

describe.skipIf(!real)(`the account, on ${whichCluster(process.env)}`, () => {
  const load = () => loadKubeConfig({ kubeconfig: real?.kubeconfig })

  it('has the rights of the Role in its namespace, and none elsewhere', async () => {
    const { config, namespace } = load()
    const api = config.makeApiClient(AuthorizationV1Api)
    const rightsIn = async (where: string) => {
      const { status } = await api.createSelfSubjectRulesReview({ body: { spec: { namespace: where } } })
      const all = (status?.resourceRules ?? []).flatMap(({ verbs, apiGroups = [], resources = [] }) =>
        verbs.flatMap((verb) => apiGroups.flatMap((group) => resources.map((name) => `${verb} ${group}/${name}`)))
      )
      return all.filter((right) => !EVERYONES.test(right)).sort()
    }
    const needed = NEEDED_RIGHTS.map(({ verb, group, resource, subresource }) => {
      return `${verb} ${group}/${subresource ? `${resource}/${subresource}` : resource}`
    })
    expect(await rightsIn(namespace)).toEqual(needed.sort())
    for (const where of ['default', 'kube-system']) expect(await rightsIn(where)).toEqual([])
  })

  it('is refused whatever else it tries', async () => {
    const { config, namespace } = load()
    const core = config.makeApiClient(CoreV1Api)
    const networking = config.makeApiClient(NetworkingV1Api)
    const rbac = config.makeApiClient(RbacAuthorizationV1Api)
    const [name, other] = ['deny-all', 'kube-system']
    const binding = { roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' } }
    const tries = {
      'read secrets': () => core.listNamespacedSecret({ namespace }),
      'read a log': () => core.readNamespacedPodLog({ name: 'x', namespace }),
      'attach to a pod': () => core.connectPostNamespacedPodAttach({ name: 'x', namespace }),
      'reach a port of a pod': () => core.connectGetNamespacedPodProxy({ name: 'x', namespace }),
      'evict a pod': () => core.createNamespacedPodEviction({ name: 'x', namespace, body: {} }),
      'delete all pods': () => core.deleteCollectionNamespacedPod({ namespace }),
      'use another namespace': () => core.listNamespacedPod({ namespace: other }),
      'see all pods': () => core.listPodForAllNamespaces(),
      'see nodes': () => core.listNode(),
      'get a token': () =>
        core.createNamespacedServiceAccountToken({ name: 'default', namespace, body: { spec: { audiences: [] } } }),
      'open the network': () => networking.deleteNamespacedNetworkPolicy({ name, namespace }),
      'lift the quota': () => core.deleteNamespacedResourceQuota({ name: 'sandboxes', namespace }),
      'lift the standard for pods': () => core.deleteNamespace({ name: namespace }),
      'give itself more': () =>
        rbac.createNamespacedRoleBinding({ namespace, body: { metadata: { name: 'more' }, ...binding } })
    }
    for (const [what, attempt] of Object.entries(tries)) {
      const error: unknown = await attempt().catch((caught: unknown) => caught)
      expect(error instanceof ApiException && error.code, what).toBe(403)
    }
  })
})
