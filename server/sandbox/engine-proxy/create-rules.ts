/** What a container may be made of when the request comes through the proxy: nothing that is not named here. */

import { posix } from 'node:path'
import { INSIDE } from '../../../workspace-server/protocol.ts'
import { isRecord } from '../../lib/is-record.ts'
import { APP, CHILD_APP, LABEL, SHARED_GROUP } from '../docker/engine/container-spec.ts'
import { seccompOption } from '../docker/engine/seccomp-profile.ts'
import { DEFAULT_UIDS, isInRange, type UidRange } from '../uid-range.ts'

type Fields = Record<string, unknown>
type Rule = (value: unknown) => boolean

export interface CreateOptions {
  /** Engine networks that containers may be on, beside `none`. */
  networks: readonly string[]
  /** The user ids that containers may have; undefined: the default. */
  uids?: UidRange | undefined
  most?: Ceilings | undefined
}

/** Of one container. */
export interface Ceilings {
  memoryMb: number
  cpus: number
  pids: number
}

export const CEILINGS: Ceilings = { memoryMb: 8192, cpus: 8, pids: 4096 }

const isTrue: Rule = (value) => value === true
const isFalse: Rule = (value) => value === false || value === undefined || value === null
const isEmpty: Rule = (value) => value === undefined || value === null || Object.keys(Object(value)).length === 0
const isText: Rule = (value) => typeof value === 'string'
/** The engine enters it before the container's own view of files is complete: under /proc/self/fd it may be a folder of the host. */
const isWorkingDir: Rule = (value) =>
  value === '' ||
  (typeof value === 'string' &&
    value.startsWith('/') &&
    !value.split('/').includes('..') &&
    !/^\/(proc|sys|dev)(\/|$)/.test(posix.normalize(value)))
const isFlag: Rule = (value) => typeof value === 'boolean'
const isUpTo =
  (most: number): Rule =>
  (value) =>
    typeof value === 'number' && value > 0 && value <= most
const isTexts: Rule = (value) => Array.isArray(value) && value.every(isText)
/** Anything: it can't widen what the container may do. */
const isAny: Rule = () => true
/** Nothing beside: the engine reads keys in any case, so that a second spelling would win. */
const isJust =
  (rules: Record<string, Rule>): Rule =>
  (value) =>
    isRecord(value) && firstProblem('', value, rules, Object.keys(rules)) === null

const isUlimit = isJust({
  Name: (value) => ['nofile', 'core', 'fsize'].includes(String(value)),
  Soft: Number.isSafeInteger,
  Hard: Number.isSafeInteger
})

const LABELS = new Set<string>(Object.values(LABEL))
const TMPFS_TARGETS = new Set<string>([INSIDE.root, INSIDE.state, '/tmp'])
const TMPFS_OPTION = /^(rw|exec|noexec|nosuid|nodev|(uid|gid|size|nr_inodes)=[1-9]\d*[km]?|mode=[01]?7[0-7]{2})$/

/** The places that a sandbox writes to. A tmpfs elsewhere could cover what the engine has made read-only or masked. */
const isTmpfs: Rule = (value) =>
  isRecord(value) &&
  Object.entries(value).every(([target, given]) => {
    const options = typeof given === 'string' ? given.split(',') : []
    const isClosed = options.includes('nosuid') && options.includes('nodev')
    return TMPFS_TARGETS.has(target) && isClosed && options.every((option) => TMPFS_OPTION.test(option))
  })

const CONTAINER: Record<string, Rule> = {
  Image: isText,
  Entrypoint: isTexts,
  Cmd: isTexts,
  WorkingDir: isWorkingDir,
  Hostname: isText,
  StopTimeout: isUpTo(3600),
  NetworkDisabled: isFlag,
  // No others: a reverse proxy or a job runner on the same host may take its orders from labels.
  Labels: (value) => isRecord(value) && Object.entries(value).every(([name, text]) => LABELS.has(name) && isText(text)),
  HostConfig: isAny,
  OpenStdin: isFlag,
  StdinOnce: isFlag,
  AttachStdin: isFlag,
  AttachStdout: isFlag,
  AttachStderr: isFlag,
  Tty: isFlag
}

const HOST: Record<string, Rule> = {
  CapDrop: (value) => Array.isArray(value) && value.includes('ALL'),
  // With exactly our list of system calls: another one could allow any.
  SecurityOpt: (value) =>
    Array.isArray(value) && value.length === 2 && value[0] === 'no-new-privileges' && value[1] === seccompOption(),
  GroupAdd: (value) => Array.isArray(value) && value.length === 1 && value[0] === SHARED_GROUP,
  Privileged: isFalse,
  ReadonlyRootfs: isTrue,
  IpcMode: (value) => value === 'private',
  Init: isFlag,
  // Another than these may give more than it takes: with `rtprio` a process is above the limit on processors.
  Ulimits: (value) => Array.isArray(value) && value.every(isUlimit),
  Tmpfs: isTmpfs,
  OomScoreAdj: (value) => typeof value === 'number' && value >= 0,
  RestartPolicy: isJust({ Name: (value) => value === 'no' }),
  AutoRemove: isFlag,
  LogConfig: isJust({ Type: (value) => value === 'none', Config: isEmpty }),
  // A runtime is the administrator's own choice; those that isolate less than the engine's default are not registered by accident.
  Runtime: (value) => typeof value === 'string' && /^[\w.-]+$/.test(value),
  Mounts: isEmpty
}

function bounded({ memoryMb, cpus, pids }: Ceilings): Record<string, Rule> {
  const memory = isUpTo(memoryMb * 1024 * 1024)
  return { PidsLimit: isUpTo(pids), Memory: memory, MemorySwap: memory, NanoCpus: isUpTo(cpus * 1e9) }
}

const EXEC: Record<string, Rule> = {
  Cmd: isTexts,
  Env: isTexts,
  WorkingDir: isWorkingDir,
  AttachStdin: isFlag,
  AttachStdout: isFlag,
  AttachStderr: isFlag,
  Tty: isFlag,
  Privileged: isFalse
}

/** The last two are our client's own, and nothing to the engine. */
const EXEC_START: Record<string, Rule> = { Detach: isFlag, Tty: isFlag, hijack: isFlag, stdin: isFlag }

const NEEDED_CONTAINER = ['Image', 'User', 'Labels', 'HostConfig']
const NEEDED_HOST = [
  'CapDrop',
  'SecurityOpt',
  'ReadonlyRootfs',
  'NetworkMode',
  'PidsLimit',
  'Memory',
  'MemorySwap',
  'NanoCpus'
]

/** null: it may be created. Else the first field that is not as it must be. */
export function whyNotCreate(
  body: unknown,
  { networks, most = CEILINGS, uids = DEFAULT_UIDS }: CreateOptions
): string | null {
  if (!isRecord(body)) return 'the body is no object'
  const { HostConfig, Labels } = body
  if (!isRecord(HostConfig)) return 'HostConfig is missing'
  if (!isRecord(Labels) || ![APP, CHILD_APP].includes(String(Labels[LABEL.app])))
    return `the label ${LABEL.app} is missing`
  const user: Rule = (value) => isOwnUser(value, uids)
  const network: Rule = (value) => value === 'none' || networks.includes(String(value))
  return (
    firstProblem('', body, { ...CONTAINER, User: user }, NEEDED_CONTAINER) ??
    firstProblem('HostConfig.', HostConfig, { ...HOST, ...bounded(most), NetworkMode: network }, NEEDED_HOST)
  )
}

/** Two equal numbers: a user without a group would get that of the image's own list. */
function isOwnUser(value: unknown, uids: UidRange): boolean {
  const [, uid = '', gid] = /^([1-9]\d{0,9}):([1-9]\d{0,9})$/.exec(String(value)) ?? []
  return uid === gid && isInRange(Number(uid), uids)
}

/** A process in a container of ours: no more than the container itself has. */
export function whyNotExec(body: unknown): string | null {
  return isRecord(body) ? firstProblem('', body, EXEC, ['Cmd']) : 'the body is no object'
}

export function whyNotExecStart(body: unknown): string | null {
  return isRecord(body) ? firstProblem('', body, EXEC_START, []) : 'the body is no object'
}

function firstProblem(prefix: string, given: Fields, rules: Record<string, Rule>, needed: string[]): string | null {
  const missing = needed.find((name) => given[name] === undefined)
  if (missing !== undefined) return `${prefix}${missing} is missing`
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
    if (!rule) return `${prefix}${name.slice(0, 40)} is not allowed`
    if (!rule(value)) return `${prefix}${name} is not allowed to be that`
  }
  return null
}
