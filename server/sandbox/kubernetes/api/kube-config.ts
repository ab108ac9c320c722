import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { AppError, errorCode } from '../../../lib/errors.ts'
import { isRecord } from '../../../lib/is-record.ts'

const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token'

export interface ClusterOptions {
  /** Files as in the variable KUBECONFIG. */
  kubeconfig?: string | undefined
  /** Nobody but a `.env` names these files, and any program could have put both there: they may name no program and no other file. */
  isFound?: boolean | undefined
  context?: string | undefined
  /** Defaults to the namespace of the context or of our own pod. */
  namespace?: string | undefined
}

/** Finds the cluster: that of the kubeconfig that is named, then that of our own pod, then that of ~/.kube/config. */
export function loadKubeConfig(options: ClusterOptions): { config: KubeConfig; namespace: string; isInside: boolean } {
  const config = new KubeConfig()
  const isInside = options.kubeconfig === undefined && existsSync(SERVICE_ACCOUNT_TOKEN)
  if (isInside) config.loadFromCluster()
  else loadFiles(config, filesIn(options))
  if (options.isFound) refuseReferences(config, filesIn(options))
  const { context } = options
  if (context !== undefined && !config.getContexts().some(({ name }) => name === context))
    throw notConfigured(`there is no context ${context}`)
  if (context !== undefined) config.setCurrentContext(context)
  if (config.getCurrentCluster() === null) throw notConfigured('its current context names no cluster')
  const namespace = options.namespace ?? config.getContextObject(config.getCurrentContext())?.namespace ?? 'default'
  return { config, namespace, isInside }
}

function filesIn({ kubeconfig }: ClusterOptions): string[] {
  return kubeconfig?.split(delimiter).filter(Boolean) ?? [join(homedir(), '.kube/config')]
}

function loadFiles(config: KubeConfig, [first = '', ...others]: string[]): void {
  if (!existsSync(first)) throw notConfigured(`there is no file ${first}`)
  load(config, first)
  for (const file of others) {
    const next = new KubeConfig()
    load(next, file)
    try {
      // The context of the first file stays.
      config.mergeConfig(next, true)
    } catch {
      throw notConfigured(`${file} has a cluster, a user or a context that an earlier file of KUBECONFIG has too`)
    }
  }
}

/** A file that somebody left in a folder must not decide what we run, or send another file of the user to its cluster. */
function refuseReferences(config: KubeConfig, files: string[]): void {
  const users = config.getUsers().map((user) => [user.exec, user.authProvider, user.certFile, user.keyFile])
  const clusters = config.getClusters().map(({ caFile }) => [caFile])
  // The client has put the content of a `token-file` in the place of the token. A backslash could hide the key.
  const hasTokenFile = files.some((file) => /token-file|\\/.test(readFileSync(file, 'utf8')))
  if (!hasTokenFile && [...users, ...clusters].flat().every((each) => !each)) return
  const message =
    'The kubeconfig that .env names would run a program or read other files: set KUBECONFIG in the environment instead, if you mean it.'
  throw new AppError('invalid', 'cluster_not_configured', message)
}

function load(config: KubeConfig, file: string): void {
  try {
    config.loadFromFile(file)
  } catch (error) {
    throw notConfigured(whyUnreadable(error, file))
  }
}

/** The messages of most errors quote the file, which contains tokens and keys. */
function whyUnreadable(error: unknown, file: string): string {
  if (!(error instanceof Error)) return `${file} is no kubeconfig`
  const code = errorCode(error)
  if (code !== undefined) return `${file} can't be read (${code})`
  if ('mark' in error && isRecord(error.mark)) return `${file} is not valid YAML (line ${Number(error.mark.line) + 1})`
  const [missing] = /^[a-z]+\[\d+\][a-z.]* is missing$/.exec(error.message) ?? []
  return missing === undefined ? `${file} is no kubeconfig` : `in ${file}, ${missing}`
}

function notConfigured(why: string): AppError {
  const message = `SANDBOX_ENGINE=kubernetes needs a cluster, but ${why}: set KUBECONFIG, or run in a pod with a service account.`
  return new AppError('invalid', 'cluster_not_configured', message)
}
