import type { ApprovalMode } from '../../../contract/effects/modes.ts'
import type { ServerToClient } from '../../../contract/live.ts'
import type { Effort } from '../../../contract/session-settings.ts'
import type { TurnLimits } from '../../agent/next-action.ts'
import type { Logger } from '../../lib/logger.ts'
import type { Models } from '../../models/port.ts'
import type { ApprovalPolicy } from '../../policy/approval-policy.ts'
import type { DefinitionGuard } from '../../policy/definition-guard.ts'
import type { ContentStore } from '../../storage/checkpoint-store.ts'
import type { EventLog } from '../../storage/event-log.ts'
import type { LiveName } from '../feed/session-feed.ts'
import type { SessionManager } from '../sandboxes/session-manager.ts'
import type { SessionsDeps } from '../sandboxes/session-options.ts'
import type { ProgramOptions } from './programs/program-options.ts'
import type { Toolbox } from './toolbox.ts'

export interface ChatOptions {
  limits: TurnLimits
  maxHistoryTokens: number
  maxOutputTokens?: number | undefined
  /** How many tools a model is offered; undefined means all. */
  maxTools?: number | undefined
  effort?: Effort | undefined
  network: string
  /** The approval mode of new sessions. */
  mode?: ApprovalMode | undefined
  /** Whether the operator has set their own image. */
  ownImage?: boolean | undefined
}

type Publish = <T extends LiveName>(sessionId: string, type: T, data: Parameters<ServerToClient[T]>[0]) => void

export interface ChatDeps {
  sessions: Pick<SessionManager, 'hold' | 'attach' | 'openSaved'>
  events: EventLog
  /** The files of messages and results. */
  contents: ContentStore
  /** The owner's instructions to the model for all their sessions; empty if there are none. */
  instructionsOf(sessionId: string): Promise<string>
  /** Returns false while an older instance lives that can't read this format of the store (`store-format.ts`). */
  mayWrite(format: number): Promise<boolean>
  /** Throws if the session may not start new work. */
  checkQuota(sessionId: string): Promise<void>
  models: Models
  policy: ApprovalPolicy
  guard: DefinitionGuard
  toolbox: Toolbox
  options: ChatOptions
  /** Runs programs; without it, they are not offered. */
  programs?: ProgramOptions | undefined
  logger: Logger
  /** Called with every event that the chat appends, after it is stored. */
  publish: SessionsDeps['publish']
  unanswered?: SessionsDeps['unanswered']
  live: Publish
}
