/** Where the path of a sandbox tool leads, as a card shows it and an approval is bound to it. */
import { z } from 'zod'

/** The name that the session's own sandbox has among the servers. */
const WORKSPACE = 'workspace'

/** `unchecked`: the sandbox could not be asked. `unusable`: no tool may use this path. */
const TARGET_KINDS = ['new', 'file', 'folder', 'other', 'unusable', 'unchecked'] as const

/** `..` and links are resolved; the rest is what was there when it was looked at. */
export const pathTarget = z.object({
  path: z.string().max(8192).nullable(),
  is: z.enum(TARGET_KINDS),
  bytes: z.number().optional(),
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
