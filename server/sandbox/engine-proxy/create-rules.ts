/** The rules for containers that are created through the proxy: every field that is not named here is refused. */

import { posix } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { INSIDE } from '../../../workspace-server/protocol.ts'
import { isRecord } from '../../lib/is-record.ts'
import { APP, CHILD_APP, LABEL, NO_PING, SHARED_GROUP, TERMINALS } from '../docker/engine/container-spec.ts'
import { seccompOption } from '../docker/engine/seccomp-profile.ts'
import { DEFAULT_UIDS, isInRange, type UidRange } from '../uid-range.ts'

type Fields = Record<string, unknown>
type Rule = (value: unknown) => boolean

export interface CreateOptions {
  /** Engine networks that containers may join, in addition to `none`. */
  networks: readonly string[]
  /** The user ids that containers may have; defaults to DEFAULT_UIDS. */
  uids?: UidRange | undefined
  most?: Ceilings | undefined
  /** A runtime that containers may name, in addition to gVisor and Kata. */
  runtime?: string | undefined
}

/** The highest limits that one container may request. */
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
/**
 * The engine enters this folder before the container's own file system view is complete: /proc/self/fd could lead to a folder of
 * the host.
 */
const isWorkingDir: Rule = (value) =>
  value === '' ||
  (typeof value === 'string' &&
    value.startsWith('/') &&
    !value.split('/').includes('..') &&
    !/^\/(proc|sys|dev)(\/|$)/.test(posix.normalize(value)))
/** A command in the container may have put a link below a folder that it can write to. */
const isExecDir: Rule = (value) =>
  isWorkingDir(value) &&
  (value === INSIDE.root ||
    ![...TMPFS_TARGETS].some((target) => `${posix.normalize(`${value}`)}/`.startsWith(`${target}/`)))
const isFlag: Rule = (value) => typeof value === 'boolean'
const isUpTo =
  (most: number): Rule =>
  (value) =>
    typeof value === 'number' && value > 0 && value <= most
const isTexts: Rule = (value) => Array.isArray(value) && value.every(isText)
/** Any value is allowed, because the field can't give the container more rights. */
const isAny: Rule = () => true
/** No other keys: the engine ignores case in keys, so a second spelling would win. */
const hasOnly =
  (rules: Record<string, Rule>): Rule =>
  (value) =>
    isRecord(value) && firstProblem('', value, rules, Object.keys(rules)) === null

const isUlimit = hasOnly({
  Name: (value) => ['nofile', 'core', 'fsize'].includes(String(value)),
  Soft: Number.isSafeInteger,
  Hard: Number.isSafeInteger
})
const ULIMITS: Record<string, number> = { nofile: 65_536, core: 0, fsize: 64 * 1024 ** 3 }
/** Each of them once. No other limits, because some give rights: a process with `rtprio` ignores the limit on processors. */
const areUlimits: Rule = (value) =>
  Array.isArray(value) &&
  value.every(isUlimit) &&
  Object.entries(ULIMITS).every(([name, most]) => {
    const given = value.filter(({ Name }) => Name === name)
    return given.length === 1 && given.every(({ Soft, Hard }) => Soft >= 0 && Hard >= 0 && Soft <= most && Hard <= most)
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
    const isSized = ['size=', 'nr_inodes='].every((name) => options.some((option) => option.startsWith(name)))
    return TMPFS_TARGETS.has(target) && isClosed && isSized && options.every((option) => TMPFS_OPTION.test(option))
  })

const CONTAINER: Record<string, Rule> = {
  Image: isText,
  Entrypoint: isTexts,
  Cmd: isTexts,
  WorkingDir: isWorkingDir,
  Hostname: isText,
  StopTimeout: isUpTo(3600),
  NetworkDisabled: isFlag,
  // No other labels: a reverse proxy or a job runner on the same host may act on them.
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
  // Exactly our system call filter: another one could allow any call.
  SecurityOpt: (value) =>
    Array.isArray(value) && value.length === 2 && value[0] === 'no-new-privileges' && value[1] === seccompOption(),
  GroupAdd: (value) => Array.isArray(value) && value.length === 1 && value[0] === SHARED_GROUP,
  Privileged: isFalse,
  ReadonlyRootfs: isTrue,
  IpcMode: (value) => value === 'private',
  Init: isFlag,
  Ulimits: areUlimits,
  Tmpfs: isTmpfs,
  OomScoreAdj: (value) => typeof value === 'number' && value >= 0,
  RestartPolicy: hasOnly({ Name: (value) => value === 'no' }),
  AutoRemove: isFlag,
  LogConfig: hasOnly({ Type: (value) => value === 'none', Config: isEmpty }),
  // Exactly ours: others could loosen limits of the container's network.
  Sysctls: (value) => isDeepStrictEqual(value, NO_PING),
  // Exactly our terminals: a mount could show any folder of the host.
  Mounts: (value) => isDeepStrictEqual(value, [TERMINALS])
}
/** gVisor has terminals and ping sockets of its own. */
const GVISOR_HOST: Record<string, Rule> = { Sysctls: isEmpty, Mounts: isEmpty }
/** Runtimes that isolate more than the engine's usual one, never less. */
const STRONG_RUNTIME = /^(runsc|kata)[\w.-]*$/

function bounded({ memoryMb, cpus, pids }: Ceilings): Record<string, Rule> {
  const memory = isUpTo(memoryMb * 1024 * 1024)
  return { PidsLimit: isUpTo(pids), Memory: memory, MemorySwap: memory, NanoCpus: isUpTo(cpus * 1e9) }
}

const EXEC: Record<string, Rule> = {
  Cmd: isTexts,
  Env: isTexts,
  WorkingDir: isExecDir,
  AttachStdin: isFlag,
  AttachStdout: isFlag,
  AttachStderr: isFlag,
  Tty: isFlag,
  Privileged: isFalse
}

/** `hijack` and `stdin` come from our client library; the engine ignores them. */
const EXEC_START: Record<string, Rule> = { Detach: isFlag, Tty: isFlag, hijack: isFlag, stdin: isFlag }

const NEEDED_CONTAINER = ['Image', 'User', 'Labels', 'HostConfig']
const NEEDED_HOST = [
  ...['CapDrop', 'SecurityOpt', 'ReadonlyRootfs', 'NetworkMode', 'IpcMode', 'Tmpfs', 'Mounts'],
  ...['PidsLimit', 'Memory', 'MemorySwap', 'NanoCpus', 'Ulimits', 'OomScoreAdj', 'LogConfig', 'RestartPolicy']
]

/** Returns null if the container may be created, otherwise the first field that breaks a rule. */
export function whyNotCreate(
  body: unknown,
  { networks, runtime, most = CEILINGS, uids = DEFAULT_UIDS }: CreateOptions
): string | null {
  if (!isRecord(body)) return 'the body is not an object'
  const { HostConfig, Labels } = body
  if (!isRecord(HostConfig)) return 'HostConfig is missing'
  if (!isRecord(Labels) || ![APP, CHILD_APP].includes(String(Labels[LABEL.app])))
    return `the label ${LABEL.app} is missing`
  const user: Rule = (value) => isOwnUser(value, uids)
  const network: Rule = (value) => value === 'none' || networks.includes(String(value))
  const isRuntime: Rule = (value) => value === runtime || STRONG_RUNTIME.test(String(value))
  const gvisor = String(HostConfig.Runtime).startsWith('runsc')
  const host = { ...HOST, ...(gvisor ? GVISOR_HOST : {}), ...bounded(most), NetworkMode: network, Runtime: isRuntime }
  return (
    firstProblem('', body, { ...CONTAINER, User: user }, NEEDED_CONTAINER) ??
    firstProblem('HostConfig.', HostConfig, host, gvisor ? NEEDED_HOST : [...NEEDED_HOST, 'Sysctls'])
  )
}

/** Two equal numbers: a user without a group would get the group that the image lists for it. */
function isOwnUser(value: unknown, uids: UidRange): boolean {
  const [, uid = '', gid] = /^([1-9]\d{0,9}):([1-9]\d{0,9})$/.exec(String(value)) ?? []
  return uid === gid && isInRange(Number(uid), uids)
}

/** A process in one of our containers may get no more rights than the container itself. */
export function whyNotExec(body: unknown): string | null {
  return isRecord(body) ? firstProblem('', body, EXEC, ['Cmd']) : 'the body is not an object'
}

export function whyNotExecStart(body: unknown): string | null {
  return isRecord(body) ? firstProblem('', body, EXEC_START, []) : 'the body is not an object'
}

function firstProblem(prefix: string, given: Fields, rules: Record<string, Rule>, needed: string[]): string | null {
  const missing = needed.find((name) => given[name] === undefined)
  if (missing !== undefined) return `${prefix}${missing} is missing`
  for (const [name, value] of Object.entries(given)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
    if (!rule) return `${prefix}${name.slice(0, 40)} is not allowed`
    if (!rule(value)) return `${prefix}${name} has a value that is not allowed`
  }
  return null
}
