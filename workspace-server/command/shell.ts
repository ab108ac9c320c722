import { accessSync, constants, existsSync } from 'node:fs'
import { basename } from 'node:path'

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const SHELLS = ['/bin/bash', '/usr/bin/bash', '/usr/local/bin/bash']

/** When memory runs out, the kernel should kill the command and not the server. */
const OFFER_TO_OOM_KILLER = '{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null;'

export interface ShellCall {
  file: string
  args: string[]
}

/**
 * If the server's process can't be protected from others (gVisor has no execute-only binaries), commands get their own process
 * table, which does not contain the server. Their background processes end with them.
 */
const OUT_OF_SIGHT = 'unshare --user --map-current-user --pid --fork --kill-child --mount-proc'

export function shellCall(command: string, outOfSight = false): ShellCall {
  const around = outOfSight ? `${OUT_OF_SIGHT} ` : ''
  const file = SHELLS.find((path) => existsSync(path)) ?? '/bin/sh'
  return { file, args: ['-c', `${OFFER_TO_OOM_KILLER} exec ${around}${file} -c "$1" ${basename(file)}`, file, command] }
}

/** The environment of commands: nothing from the server's own environment except the image's PATH. */
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
