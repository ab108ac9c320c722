import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { AppError, hasCode } from '../../../lib/errors.ts'
import { SYSTEM_PATH } from '../../../lib/system-path.ts'
import type { ImageAssets } from './image-assets.ts'

const SUITE = 'bookworm'
const EXCLUDED = ['doc', 'info', 'locale', 'man'].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`)
const HOOK = 'chroot "$1" sh -s <"$PREPARE_BASE"'
const TOTAL_MS = 15 * 60_000

/** Part of the base image's name. */
export const DEBOOTSTRAP_RECIPE = [SUITE, ...EXCLUDED, HOOK].join('\n')

/**
 * Builds a small Debian as a tar file in `dir` and returns its path. It needs Debian's packages (mmdebstrap knows where to get
 * them), but no registry.
 */
export async function debootstrap(dir: string, assets: ImageAssets, onLine: (line: string) => void): Promise<string> {
  const tar = join(dir, 'rootfs.tar')
  const prepare = join(dir, 'prepare-base.sh')
  await writeFile(prepare, assets.prepareBase)
  const packages = assets.packages.toString('utf8').trim().split(/\s+/).join(',')
  const args = ['--variant=minbase', `--include=${packages}`, ...EXCLUDED, `--customize-hook=${HOOK}`, SUITE, tar]
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const child = spawn('mmdebstrap', args, {
    env: { ...process.env, PATH: SYSTEM_PATH, PREPARE_BASE: prepare, TMPDIR: dir },
    stdio: ['ignore', 'ignore', 'pipe'],
    // The `timeout` option would keep the process alive if the program is missing.
    signal: AbortSignal.timeout(TOTAL_MS)
  })
  const lines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => {
    lines.push(line)
    if (lines.length > 50) lines.shift()
    if (line.startsWith('I: ')) onLine(line.slice(3))
  })
  child.once('error', (cause) => reject(notInstalled(cause)))
  child.once('close', (code, signal) => {
    if (code === 0) resolve(tar)
    else reject(new Error(`mmdebstrap ended with ${signal ?? code}: ${reason(lines)}`))
  })
  return promise
}

function reason(lines: string[]): string {
  return (lines.findLast((line) => line.startsWith('E: ')) ?? lines.at(-1) ?? 'it said nothing').slice(0, 300)
}

function notInstalled(cause: Error): Error {
  if (!hasCode(cause, 'ENOENT')) return cause
  return new AppError('unavailable', 'mmdebstrap_missing', 'mmdebstrap is not installed', { cause })
}
