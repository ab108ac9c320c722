import { homedir } from 'node:os'
import { isAbsolute, normalize } from 'node:path'
import { isRecord } from '../lib/is-record.ts'
import { parseHostPattern } from '../lib/web/host-pattern.ts'
import { EntryProblem, number, onlyKeys, text, texts } from './entry-values.ts'
import type { SandboxRequest } from './server-entry.ts'

/** These would share too much at once; an entry can name a folder inside them instead. */
const TOO_MUCH = /^\/(bin|boot|etc|lib|lib64|opt|sbin|srv|tmp|usr|var|workspace)?$/
/** These contain no files, or are the sandbox's own. */
const NEVER = /^\/(proc|sys|dev|run|var\/run|opt\/mcp)(\/|$)/

export const SANDBOX_KEYS = ['image', 'network', 'folders', 'memoryMb', 'cpus']

export function readSandbox(value: unknown, path: string[]): SandboxRequest {
  if (value === true) return {}
  if (!isRecord(value)) throw new EntryProblem(path, 'must be true, false or an object')
  onlyKeys(value, SANDBOX_KEYS, path)
  const { image, network, folders, memoryMb, cpus } = value
  return {
    ...(image === undefined ? {} : { image: text(image, [...path, 'image']) }),
    ...(network === undefined ? {} : { network: readNetwork(network, [...path, 'network']) }),
    ...(folders === undefined ? {} : { folders: readFolders(folders, [...path, 'folders']) }),
    ...(memoryMb === undefined ? {} : { memoryMb: number(16, 1_048_576)(memoryMb, [...path, 'memoryMb']) }),
    ...(cpus === undefined ? {} : { cpus: number(0.01, 512)(cpus, [...path, 'cpus']) })
  }
}

/** A folder of this machine that a sandbox may read. */
export function sharedFolder(value: unknown, path: string[]): string {
  const folder = normalize(text(value, path)).replace(/(?<=.)\/$/, '')
  if (!isAbsolute(folder)) throw new EntryProblem(path, 'must be an absolute path when there is a sandbox')
  if (NEVER.test(folder)) throw new EntryProblem(path, `${folder} can't be shared with a sandbox`)
  if (TOO_MUCH.test(folder) || `${homedir()}/`.startsWith(`${folder}/`)) {
    throw new EntryProblem(path, `${folder} is too much to share with a sandbox: name a folder in it`)
  }
  return folder
}

function readFolders(value: unknown, path: string[]): string[] {
  return texts(value, path).map((folder, index) => sharedFolder(folder, [...path, String(index)]))
}

/** Not the name of an engine network, because that would bypass the list. */
function readNetwork(value: unknown, path: string[]): string[] {
  if (value === 'none' || value === false) return []
  if (!Array.isArray(value)) throw new EntryProblem(path, 'must be "none" or a list of hosts, like ["api.example.com"]')
  return texts(value, path).map((host, index) => {
    if (parseHostPattern(host)) return host
    throw new EntryProblem(
      [...path, String(index)],
      'must be a host, like "api.example.com", "*.example.com" or "10.0.0.5:8080"'
    )
  })
}
