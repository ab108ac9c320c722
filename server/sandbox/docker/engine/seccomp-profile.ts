import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../../lib/files/package-root.ts'

let option: string | undefined

/**
 * The system calls that a sandbox may make, in the engine's format: the engine's default list for a container without
 * capabilities, minus the parts of the kernel that no namespace covers (`images/README.md`).
 */
export function seccompOption(): string {
  option ??= `seccomp=${JSON.stringify(JSON.parse(readFileSync(join(packageRoot(), 'images/seccomp.json'), 'utf8')))}`
  return option
}
