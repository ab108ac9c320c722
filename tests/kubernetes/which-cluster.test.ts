import { expect, it } from 'vitest'
import { realCluster, whichCluster } from '../fixtures/kubernetes/which-cluster.ts'

const both = { TEST_KUBECONFIG: '/config', TEST_KUBERNETES_IMAGE: 'image' }

it('takes the real cluster if both variables name it, and otherwise says that it is a stand-in', () => {
  expect(realCluster(both)).toEqual({ kubeconfig: '/config', image: 'image' })
  expect(whichCluster(both)).toBe('the cluster of TEST_KUBECONFIG')
  expect(whichCluster({})).toMatch(/^a stand-in/)
})

it.each(['TEST_KUBECONFIG', 'TEST_KUBERNETES_IMAGE'] as const)('refuses half of a cluster: without %s', (name) => {
  expect(() => whichCluster({ ...both, [name]: '' })).toThrow(`${name} is missing`)
})
