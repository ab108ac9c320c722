/**
 * Makes the calls of a model's program in a chat. Each becomes a call of the session: announced by the same function as a call of the
 * model, decided by the same rules and people, made by the toolbox. Invariant: the session's log decides what may be sent. A call that
 * was under way when its server ended stays in the log as unknown, and another entry asks about repeating it.
 */

import { createHash } from 'node:crypto'
import { PROGRAMS, ROUTER, WORKSPACE } from '../../../../contract/own-sources.ts'
import { callsOfProgram, coversReads } from '../../../../contract/programs.ts'
import { type CallEntry, callOf, type Transcript } from '../../../../contract/transcript.ts'
import { type RequestInput, requestCall } from '../../../agent/model-step.ts'
import type { OfferedTool } from '../../../calls/offered-tool.ts'
import { namedLike, outcomeOf } from '../../../code/call-outcome.ts'
import {
  ApprovalPending,
  type CallHooks,
  type CallOutcome,
  LostRun,
  type ProgramCall,
  type ProgramCalls,
  searchLimit,
  unsureWarning
} from '../../../code/program-call.ts'
import { programCard } from '../../../code/program-card.ts'
import type { RunLog } from '../../../code/run-log.ts'
import { headOf } from '../../../lib/cut-text.ts'
import { type AppError, isAppError } from '../../../lib/errors.ts'
import { isReadOnly } from '../../../policy/tool-effects.ts'
import type { NewEvent } from '../../../storage/event-log.ts'
import { typeSignature } from '../../../tools/type-signature.ts'
import type { Conversation } from '../../feed/conversation.ts'
import { isOwnershipError } from '../../sandboxes/ownership-error.ts'
import { appendEvents, lostWithServer, onceKey, resultOf } from '../../sandboxes/session-events.ts'
import type { HeldSession } from '../../sandboxes/session-manager.ts'
import { askedElsewhere } from '../alternative-server.ts'
import { askedAgain, withTargets } from '../call-targets.ts'
import type { ChatDeps } from '../chat-options.ts'
import { askedInstead, isForkRefused } from '../forked-calls.ts'

export interface ProgramPlace {
  deps: ChatDeps
  sessionId: string
  hold: HeldSession
  conversation: Conversation
  /** The call of `run_code`. */
  program: CallEntry
  log: RunLog
  /** The calls that run here now. */
  running: Set<string>
}

/** The log of a session also has what the program gets, so only its beginning is shown. */
const SHOWN_CHARS = 4000
/** The page and the log show arguments. */
const MAX_ARGS_CHARS = 200_000
const MAX_REPEATS = 5

export class ChatCalls implements ProgramCalls {
  readonly #place: ProgramPlace
  #tools: Promise<OfferedTool[]> | undefined
  /** Calls to the sandbox run one after another: they work on the same files. */
  #lane: Promise<unknown> = Promise.resolve()

  constructor(place: ProgramPlace) {
    this.#place = place
  }

  async run(call: ProgramCall, hooks: CallHooks): Promise<CallOutcome> {
    try {
      return await this.#run(call, hooks)
    } catch (error) {
      // Another instance has the session, or the store is away. That is no outcome of the call.
      throw isOwnershipError(error) ? new LostRun('', { cause: error }) : error
    }
  }

  async #run(call: ProgramCall, hooks: CallHooks): Promise<CallOutcome> {
    if (call.kind === 'search') return { ok: true, value: await this.#search(call.args, hooks.signal) }
    const tool = await this.#named(call, hooks.signal)
    if (!tool) return unknownTool(call)
    if (call.kind === 'describe') return { ok: true, value: typeSignature(tool.server, tool.whole) }
    if (JSON.stringify(call.args).length > MAX_ARGS_CHARS)
      return failed('code_too_much', `In a chat, arguments have at most ${MAX_ARGS_CHARS} characters.`)
    await this.#place.deps.checkQuota(this.#place.sessionId)
    return this.#decideAndSend(call, tool, hooks)
  }

  /** The person's answer to a card of this run. */
  async answerTo(cardId: string): Promise<{ approved: boolean; reason?: string } | undefined> {
    const n = Number(cardId.split('.').at(-2))
    const { decision } = latest(await this.#place.conversation.refresh(), this.#place, n) ?? {}
    if (!decision) return undefined
    return { approved: decision.approved, ...(decision.reason ? { reason: decision.reason } : {}) }
  }

  async #decideAndSend(call: ProgramCall, tool: OfferedTool, hooks: CallHooks): Promise<CallOutcome> {
    const { deps, conversation, hold, program, sessionId } = this.#place
    for (;;) {
      hooks.signal.throwIfAborted()
      const transcript = await conversation.refresh()
      const entry = latest(transcript, this.#place, call.n)
      if (!entry || entry.result?.outcome === 'unknown') {
        const repeats = transcript.turnId === program.turnId ? countOf(transcript, this.#place, call.n) : MAX_REPEATS
        if (repeats >= MAX_REPEATS) return failed('outcome_unknown', 'This call was interrupted too often.')
        await this.#request(call, tool, transcript, hooks.signal)
      } else if (!entry.decision) throw new ApprovalPending(cardOf(entry))
      else if (entry.result) return outcomeOf(entry.result)
      else if (!entry.decision.approved) return await this.#refused(entry, call)
      // Its start is in the log, it has no result, and it does not run here.
      else if (entry.startedAt !== undefined) await this.#append([lostWithServer(entry.callId)])
      else {
        try {
          return await this.#send(entry, hooks)
        } catch (error) {
          const look = { sessionId, hold, signal: hooks.signal, logger: deps.logger }
          const events = isForkRefused(entry, error)
            ? [await askedInstead(look, entry, error)]
            : isAppError(error)
              ? this.#again(entry, error, sessionId, transcript)
              : []
          if (events.length === 0) throw error
          await this.#append(events)
        }
      }
    }
  }

  /** The events that ask again about a call that could not run as it was shown. */
  #again(entry: CallEntry, error: AppError, sessionId: string, { allowed }: Transcript): NewEvent[] {
    const { policy } = this.#place.deps
    if (error.code === 'target_changed') return [askedAgain(sessionId, entry, error)]
    if (error.code !== 'alternative_found') return []
    return askedElsewhere(sessionId, entry, error, { allowed, policy }).map((event) =>
      event.type === 'tool:approval_required' ? { ...event, data: { ...event.data, program: entry.program } } : event
    )
  }

  async #request(call: ProgramCall, tool: OfferedTool, transcript: Transcript, signal: AbortSignal): Promise<void> {
    const { deps, sessionId, hold, program } = this.#place
    const repeats = countOf(transcript, this.#place, call.n)
    const callId = innerId(this.#place, call.n, repeats + 1)
    const isRead = isTrustedReader(tool)
    const changed = tool.server === WORKSPACE ? new Map() : await deps.guard.changes([tool])
    const input: RequestInput = {
      ...{ sessionId, turnId: program.turnId, changed, policy: deps.policy, allowed: transcript.allowed },
      // The program goes on with the result, so the call can't run in a fork that the person may discard.
      mode: transcript.mode === 'preview' ? 'ask' : transcript.mode
    }
    const [asked, rule] = requestCall(input, { tool, args: call.args, callId }, 1, 1)
    if (asked?.type !== 'tool:approval_required') return
    const isCovered =
      rule === undefined && isRead && changed.size === 0 && coversReads(transcript.calls, program.callId)
    // Nobody knows whether the interrupted call took effect, so only a person may repeat it, also where the server says that it may be.
    const isUnsure = repeats > 0 && (!isRead || changed.size > 0)
    const { line, source, sources } = programCard(this.#place.log, call, cardOf(asked.data), 0).code ?? noOrigin
    const warning = isUnsure ? { warning: unsureWarning(repeats) } : {}
    const origin = { callId: program.callId, n: call.n, line, source, sources, ...(isRead && { isRead }), ...warning }
    const event = { type: asked.type, data: { ...asked.data, program: origin } } as typeof asked
    const decision = isCovered
      ? { callId, approved: true, by: 'session' as const, reason: 'The reads of this program were approved.' }
      : rule?.type === 'tool:approval_resolved' && (!isUnsure || !rule.data.approved)
        ? rule.data
        : undefined
    const look = { sessionId, hold, signal, logger: deps.logger }
    const [shown = event] = decision ? [event] : await withTargets([event], look)
    await this.#append([
      { ...shown, key: `asked:${callId}` },
      ...(decision ? [{ type: 'tool:approval_resolved', data: decision, key: onceKey('decision', callId, 1) }] : [])
    ])
  }

  async #send(entry: CallEntry, hooks: CallHooks): Promise<CallOutcome> {
    const { deps, sessionId, hold, running } = this.#place
    let outcome: CallOutcome | undefined
    const make = async () => {
      hooks.signal.throwIfAborted()
      await hooks.beforeSending()
      running.add(entry.callId)
      try {
        await deps.toolbox.run(hold, {
          ...{ sessionId, call: entry, signal: hooks.signal, onOutput: () => {} },
          settle: async (result) => {
            outcome = outcomeOf(result)
            await hooks.record(outcome)
            return result.content.map(shownPart)
          }
        })
      } finally {
        running.delete(entry.callId)
      }
    }
    const work = entry.server === WORKSPACE ? this.#lane.then(make) : make()
    if (entry.server === WORKSPACE) this.#lane = work.catch(() => {})
    await work
    return outcome ?? failed('internal', 'The call has no result.')
  }

  /** A rejected call gets a result too, which says that the program was told. */
  async #refused({ callId, decision, program }: CallEntry, { server, tool }: ProgramCall): Promise<CallOutcome> {
    const reason = decision?.reason ? ` ${decision.reason}` : ''
    const isUnsure = program?.warning !== undefined
    const [code, message] =
      decision?.by === 'policy'
        ? ['denied_by_policy', `The rules do not allow ${server}.${tool}.`]
        : isUnsure
          ? ['outcome_unknown', `${server}.${tool} was not repeated. Whether it took effect is unknown.${reason}`]
          : ['approval_denied', `The user rejected ${server}.${tool}; it was not run.${reason}`]
    await this.#append([resultOf(callId, { isError: true, content: [{ type: 'text', text: message }] })])
    return failed(code, message)
  }

  async #append(events: NewEvent[]): Promise<void> {
    const { deps, sessionId, hold } = this.#place
    try {
      await appendEvents(deps, sessionId, events, hold.epoch)
    } catch (error) {
      // Somebody else has appended it, for example the end of the turn. The log says how to go on.
      if (!isAppError(error, 'event_exists')) throw error
    }
  }

  async #named({ server, tool }: ProgramCall, signal: AbortSignal): Promise<OfferedTool | undefined> {
    const find = (tools: readonly OfferedTool[]) => {
      const servers = [...new Set(tools.map((each) => each.server))].map((name) => ({ name }))
      const meant = namedLike(servers, server)?.name
      return namedLike(
        tools.filter((each) => each.server === meant),
        tool
      )
    }
    const known = this.#tools && find(await this.#tools)
    if (known) return known
    // Listed again for a name that is not there: its server may have come back.
    this.#tools = this.#offered(signal)
    return find(await this.#tools)
  }

  async #offered(signal: AbortSignal): Promise<OfferedTool[]> {
    const { deps, hold, sessionId } = this.#place
    const { tools } = await deps.toolbox.offer(hold, sessionId, signal)
    return tools.filter(({ server }) => server !== ROUTER && server !== PROGRAMS)
  }

  async #search({ query, limit }: Record<string, unknown>, signal: AbortSignal) {
    const { deps, sessionId } = this.#place
    return deps.toolbox.search(sessionId, String(query ?? ''), searchLimit(limit), signal)
  }
}

const noOrigin = { line: 0, source: '', sources: [] }

/** The id of the call `n` of a program. A model can't know this id in advance, so it can't use it for a call of its own. */
function innerId({ sessionId, program }: Pick<ProgramPlace, 'sessionId' | 'program'>, n: number, time: number): string {
  const key = createHash('sha256')
    .update(JSON.stringify([sessionId, program.callId]))
    .digest('hex')
    .slice(0, 24)
  return `run_${key}_${n}${time > 1 ? `_${time}` : ''}`
}

/** How often the call `n` was announced. */
function countOf(transcript: Transcript, { program }: Pick<ProgramPlace, 'program'>, n: number): number {
  return callsOfProgram(transcript.calls, program.callId).filter((each) => each.program?.n === n).length
}

function latest(transcript: Transcript, place: ProgramPlace, n: number): CallEntry | undefined {
  return callOf(transcript, innerId(place, n, countOf(transcript, place, n)))
}

function cardOf({ server, name, args, hash }: Pick<CallEntry, 'server' | 'name' | 'args' | 'hash'>) {
  return { server, tool: name, args, hash, asker: { door: 'chat' } }
}

function shownPart(part: unknown): unknown {
  const { type, text }: { type?: unknown; text?: unknown } = { ...(part as object) }
  return type === 'text' && typeof text === 'string' ? { type, text: shownText(text) } : part
}

export function shownText(text: string): string {
  if (text.length <= SHOWN_CHARS) return text
  return `${headOf(text, SHOWN_CHARS)}\n[… ${text.length - SHOWN_CHARS} characters, which only the program got …]`
}

function unknownTool({ server, tool }: ProgramCall): CallOutcome {
  return failed(
    'tool_gone',
    `There is no tool ${JSON.stringify(tool.slice(0, 100))} on ${JSON.stringify(server.slice(0, 100))}.`
  )
}

function failed(code: string, message: string): CallOutcome {
  return { ok: false, code, message }
}

/** Nobody has checked what a server says of its tools. */
function isTrustedReader(tool: OfferedTool): boolean {
  return tool.server === WORKSPACE ? isReadOnly(tool) : tool.whole.isListedReader === true
}
