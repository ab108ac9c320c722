/** Where the path of a sandbox tool leads. The card shows it, and the approval is valid for it only. */
import { z } from 'zod'
import { WORKSPACE } from './own-sources.ts'

/** `unchecked`: the sandbox could not be asked. `unusable`: no tool may use this path. */
const TARGET_KINDS = ['new', 'file', 'folder', 'other', 'unusable', 'unchecked'] as const

export const contentHash = z.string().regex(/^[0-9a-f]{64}$/)

/** `..` and links are resolved. The other fields describe what was there when it was checked. */
export const pathTarget = z.object({
  path: z.string().max(8192).nullable(),
  is: z.enum(TARGET_KINDS),
  bytes: z.number().optional(),
  /** SHA-256 of the content, of a file that a card can show. */
  hash: contentHash.optional(),
  throughLink: z.literal(true).optional(),
  problem: z.string().max(500).optional()
})
export type PathTarget = z.infer<typeof pathTarget>

const PATH_ARGUMENTS: Record<string, string> = {
  write_file: 'path',
  read_file: 'path',
  list_files: 'path',
  execute_command: 'cwd'
}

/** undefined: this call names no path. */
export function pathOf(call: { server: string; name: string }, args: Record<string, unknown>): string | undefined {
  if (call.server !== WORKSPACE || !Object.hasOwn(PATH_ARGUMENTS, call.name)) return undefined
  const path = args[PATH_ARGUMENTS[call.name] ?? '']
  return typeof path === 'string' ? path : undefined
}
