import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { discard, temporaryFolder } from '../../../../tests/support/temporary-folder.ts'
import { isAppError } from '../../../lib/errors.ts'
import { loadKubeConfig } from './kube-config.ts'

let folder: string
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => discard(folder))

function file(name: string, content: string): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const config = (name: string, namespace: string) =>
  JSON.stringify({
    'current-context': name,
    clusters: [{ name, cluster: { server: `https://${name}:6443` } }],
    users: [{ name, user: { token: 'secret-token' } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace } }]
  })

function messageFor(kubeconfig: string, context?: string): string {
  try {
    loadKubeConfig({ kubeconfig, context })
  } catch (error) {
    if (isAppError(error, 'cluster_not_configured')) return JSON.stringify({ ...error, message: error.message })
    throw error
  }
  throw new Error('It was accepted.')
}

describe('a kubeconfig', () => {
  it('gives the cluster and the namespace of its context', () => {
    const kubeconfig = [file('a', config('one', 'first')), file('b', config('two', 'second'))].join(':')
    expect(loadKubeConfig({ kubeconfig }).namespace).toBe('first')
    const two = loadKubeConfig({ kubeconfig, context: 'two' })
    expect([two.namespace, two.config.getCurrentCluster()?.server]).toEqual(['second', 'https://two:6443'])
    expect(loadKubeConfig({ kubeconfig, namespace: 'mine' }).namespace).toBe('mine')
  })

  it('that has a name which an earlier file has is refused', () => {
    const kubeconfig = [file('a', config('one', 'first')), file('b', config('one', 'second'))].join(':')
    expect(messageFor(kubeconfig)).toContain('that an earlier file of KUBECONFIG has too')
  })

  // Checked: without the check, the client runs the program at the first request.
  it.each([
    ['exec', { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: './login' } }],
    ['auth-provider', { 'auth-provider': { name: 'gcp', config: { 'cmd-path': './login' } } }],
    ['token-file', { 'token-file': '/etc/hostname' }],
    ['client-key', { 'client-key': '/home/me/.ssh/id_ed25519' }],
    ['client-certificate', { 'client-certificate': 'client.pem' }]
  ])('that only a .env names is refused if it names a program or another file: %s', (_what, user) => {
    const one = JSON.parse(config('one', 'first'))
    const kubeconfig = file('a', JSON.stringify({ ...one, users: [{ name: 'one', user }] }))
    expect(() => loadKubeConfig({ kubeconfig, isFound: true })).toThrow('set KUBECONFIG in the environment')
    expect(loadKubeConfig({ kubeconfig }).namespace).toBe('first')
    expect(loadKubeConfig({ kubeconfig: file('b', config('one', 'first')), isFound: true }).namespace).toBe('first')
  })

  it('that is missing, or lacks the context, is named', () => {
    expect(messageFor(join(folder, 'none'))).toContain(`there is no file ${join(folder, 'none')}`)
    expect(messageFor(file('a', config('one', 'first')), 'other')).toContain('there is no context other')
  })

  it.each([
    ['a line without its end', 'users:\n- name: me\n  user: {token: "secret-token\n', /not valid YAML \(line \d+\)/],
    ['a tab', 'users:\n- name: me\n  user:\n\ttoken: secret-token\n', /not valid YAML \(line 4\)/],
    ['an alias', 'users:\n- name: me\n  user:\n    token: *secret-token\n', /not valid YAML \(line 4\)/],
    ['the token alone', 'secret-token\n', /its current context names no cluster/],
    ['a field that has another type', 'clusters: secret-token\n', /its current context names no cluster/],
    ['a list', '- secret-token\n- {"users": 1\n', /is not valid YAML/],
    ['a user that is nothing', 'users: [null, secret-token]\n', /is no kubeconfig/],
    ['a user without a name', 'users:\n- user: {token: secret-token}\n', /users\[0\]\.name is missing/]
  ])('that is damaged (%s) shows none of its content', (_what, content, expected) => {
    const message = messageFor(file('damaged', content))
    expect(message).toMatch(expected)
    expect(message).not.toContain('secret')
  })
})
