import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { AppError, messageOf } from '../../lib/errors.ts'

const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token'

export interface ClusterOptions {
  /** Files as in the variable KUBECONFIG. */
  kubeconfig?: string | undefined
  context?: string | undefined
  /** Defaults to the namespace of the context or of our own pod. */
  namespace?: string | undefined
}

/** Finds the cluster: that of our own pod, then the kubeconfig that is named, then ~/.kube/config. */
export function loadKubeConfig(options: ClusterOptions): { config: KubeConfig; namespace: string; isInside: boolean } {
  const config = new KubeConfig()
  const isInside = options.kubeconfig === undefined && existsSync(SERVICE_ACCOUNT_TOKEN)
  try {
    if (isInside) config.loadFromCluster()
    else loadFiles(config, options.kubeconfig?.split(delimiter).filter(Boolean) ?? [join(homedir(), '.kube/config')])
  } catch (error) {
    throw notConfigured(messageOf(error))
  }
  const { context } = options
  if (context !== undefined && !config.getContexts().some(({ name }) => name === context))
    throw notConfigured(`there is no context ${context}`)
  if (context !== undefined) config.setCurrentContext(context)
  if (config.getCurrentCluster() === null) throw notConfigured('its current context names no cluster')
  const namespace = options.namespace ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default'
  return { config, namespace, isInside }
}

function loadFiles(config: KubeConfig, [first, ...others]: string[]): void {
  if (first === undefined || !existsSync(first)) throw new Error(`there is no file ${first ?? ''}`)
  config.loadFromFile(first)
  for (const file of others) {
    const next = new KubeConfig()
    next.loadFromFile(file)
    config.mergeConfig(next)
  }
}

function notConfigured(why: string): AppError {
  const message = `SANDBOX_ENGINE=kubernetes needs a cluster, but ${why}: set KUBECONFIG, or run in a pod with a service account.`
  return new AppError('invalid', 'cluster_not_configured', message)
}
