import type { RealmProcess } from '../../../code/realms/code-channel.ts'
import type { RealmRequest } from '../../../code/realms/realm-queue.ts'

export interface ProgramOptions {
  openRealm(sessionId: string, request: Omit<RealmRequest, 'owner'>): Promise<RealmProcess>
  /** How long the realm is kept while the program waits only for a person. */
  lingerMs: number
  /** How often the log is searched for decisions. */
  pollMs: number
  /** Stops what is kept ready for the next program. */
  close?(): Promise<void>
}
