import type { PodOptions } from '../sandbox/kubernetes/pod-spec.ts'
import type { Settings } from './settings.ts'

/** The settings for pods. `load-settings.ts` has checked that there is an image. */
export function kubernetesPods(settings: Settings): PodOptions {
  return {
    image: settings.KUBERNETES_IMAGE ?? '',
    pullSecrets: settings.KUBERNETES_PULL_SECRETS,
    nodeSelector: settings.KUBERNETES_NODE_SELECTOR && Object.fromEntries(settings.KUBERNETES_NODE_SELECTOR.map(pair)),
    tolerations: settings.KUBERNETES_TOLERATIONS?.map(toleration),
    priorityClass: settings.KUBERNETES_PRIORITY_CLASS,
    hostUsers: settings.KUBERNETES_HOST_USERS && settings.KUBERNETES_HOST_USERS === 'true',
    seccompProfile: settings.KUBERNETES_SECCOMP_PROFILE
  }
}

function pair(text: string): [string, string] {
  const at = text.indexOf('=')
  return [text.slice(0, at), text.slice(at + 1)]
}

/** `key=value:effect`, or `key:effect` for any value, as `kubectl taint` writes them. */
function toleration(text: string) {
  const [taint = '', effect = ''] = text.split(':')
  const [key, value] = taint.includes('=') ? pair(taint) : [taint]
  return value === undefined ? { key, operator: 'Exists', effect } : { key, operator: 'Equal', value, effect }
}
