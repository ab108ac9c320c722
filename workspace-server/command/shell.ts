import { accessSync, constants, existsSync } from 'node:fs'

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const BASHES = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash']

/** When memory runs out, the kernel should end the command and not the server. */
const OFFER_TO_OOM_KILLER = '{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null;'

/**
 * Node connects children through sockets, and opening /dev/stdout or /dev/stderr fails on a socket; so bash puts real pipes in
 * between. They ignore SIGTERM so that what a command says while it ends still arrives.
 */
const THROUGH_PIPES = '> >(trap "" TERM; exec cat) 2> >(trap "" TERM; exec cat >&2)'

export interface ShellCall {
  file: string
  args: string[]
}

/**
 * Where the server's own process can't be closed to others (gVisor knows no execute-only binary), commands get a process table of
 * their own, in which the server does not exist. Their background processes end with them.
 */
const OUT_OF_SIGHT = 'unshare --user --map-current-user --pid --fork --kill-child --mount-proc'

export function shellCall(command: string, outOfSight = false): ShellCall {
  // Around the command alone: the pipes' readers must outlive its process table, or its last words are lost.
  const around = outOfSight ? `${OUT_OF_SIGHT} ` : ''
  const bash = BASHES.find((path) => existsSync(path))
  return bash === undefined
    ? { file: '/bin/sh', args: ['-c', `${OFFER_TO_OOM_KILLER} exec ${around}/bin/sh -c "$1"`, 'sh', command] }
    : {
        file: bash,
        args: ['-c', `${OFFER_TO_OOM_KILLER} exec ${around}"$BASH" -c "$1" bash ${THROUGH_PIPES}`, 'bash', command]
      }
}

/** What commands see: nothing of the server's own environment but the image's PATH. */
export function commandEnvironment(home: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? DEFAULT_PATH,
    HOME: home,
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    TMPDIR: isWritable('/tmp') ? '/tmp' : home
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return true
  } catch {
    return false
  }
}
