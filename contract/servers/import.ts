/** Importing the servers of other MCP clients on this machine. Only for administrators who sit at it. */
import { z } from 'zod'
import type { PlannedServer } from './servers.ts'

export interface ImportableServer extends PlannedServer {
  /** The client whose file has the server, and the path of that file. */
  client: string
  source: string
  project: string | null
  /** Notes on keys that were translated or can't be. */
  notes: string[]
  /** Proves what was shown. An import names it. */
  confirm: string
}

export interface ImportReply {
  servers: ImportableServer[]
  /** Reasons why some entries can't be imported. */
  problems: string[]
  canMoveSecrets: boolean
}

export const importServersSchema = z.object({
  chosen: z
    .array(z.object({ name: z.string().max(200), confirm: z.string().max(200) }))
    .min(1)
    .max(1000),
  moveSecrets: z.boolean().optional()
})
export type ImportServers = z.infer<typeof importServersSchema>
