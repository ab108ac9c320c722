/**
 * One client of the pass-through mode: one connection, one session, or one request. Owns how a request gets to its server and how
 * the server's questions get back: as requests to clients of the older revisions, as results to those of the newer one.
 */

import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  LOG_LEVEL_META_KEY,
  type Progress,
  type Server
} from '@modelcontextprotocol/server'
import type { Caller } from '../../calls/caller.ts'
import type { PeerNotification, RawResult } from '../../connections/wire/call-input.ts'
import { rawResult } from '../../connections/wire/raw-result.ts'
import { askingPrompter, callHash } from '../asking/client-prompter.ts'
import { withNamedQuestions } from '../asking/name-asker.ts'
import type { CallContext } from '../asking/tool-request.ts'
import { namedCaller } from '../execute/create-gateway-server.ts'
import type { ClientLane } from './client-lane.ts'
import type { Exposed } from './exposed.ts'
import { HeldCall, tellProgress } from './held-call.ts'
import type { Borrowed, Lanes } from './lanes.ts'
import { levelOf } from './log-level.ts'
import type { RequestContext, Scope } from './scope.ts'

export interface FaceOptions {
  exposed: Exposed
  lanes: Lanes
  caller: Caller
  era: 'legacy' | 'modern'
}

export type Job = (context: CallContext, lane: ClientLane) => Promise<RawResult>

/** The user may be away. */
const QUESTION_MS = 600_000

export class ExposedFace {
  readonly exposed: Exposed
  readonly lanes: Lanes
  readonly #caller: Caller
  readonly #era: FaceOptions['era']
  readonly #server: Server

  constructor(server: Server, { exposed, lanes, caller, era }: FaceOptions) {
    this.#server = server
    this.exposed = exposed
    this.lanes = lanes
    this.#caller = caller
    this.#era = era
  }

  capabilities({ mcpReq }: RequestContext): ClientCapabilities {
    if (this.#era === 'legacy') return this.#server.getClientCapabilities() ?? {}
    const envelope: Record<string, unknown> = mcpReq.envelope ?? {}
    const declared = envelope[CLIENT_CAPABILITIES_META_KEY]
    return typeof declared === 'object' ? { ...declared } : {}
  }

  /** The lane for what belongs to no request. */
  lane(context: RequestContext): ClientLane {
    const capabilities = this.capabilities(context)
    return this.lanes.borrow({ server: '', caller: this.#caller, capabilities, isModern: false, alone: false }).lane
  }

  /** Like `lane`, for what only this client may receive. */
  ownLane(context: RequestContext): ClientLane {
    this.lanes.leaveShared()
    return this.lane(context)
  }

  /** For a request that may be answered with a question; `subject` is what the answer must be about. */
  async serve(server: string, context: RequestContext, subject: unknown, job: Job): Promise<RawResult> {
    if (this.#era === 'legacy') return this.plainly(server, context, job)
    const { held } = this.exposed
    const request = callHash([this.#caller.owner, server, context.mcpReq.method, subject])
    const state: string | undefined = context.mcpReq.requestState()
    if (held.isOne(state)) return held.round(held.take(state, request), request, context)
    const call = new HeldCall(server)
    const ask: Scope['ask'] = (question, signal) => call.ask(question, signal)
    const { lane, release } = this.#borrow(server, context, true)
    call.start(async () => {
      try {
        const asking = {
          ...this.#context(server, context, lane, call),
          prompter: askingPrompter(this.capabilities(context), ask)
        }
        return withNamedQuestions(server, await lane.during(call, () => job(asking, lane)))
      } finally {
        release()
      }
    })
    return held.round(call, request, context)
  }

  /** For all other requests: lists, completion. */
  async plainly(server: string, context: RequestContext, job: Job): Promise<RawResult> {
    const { lane, release } = this.#borrow(server, context, false)
    const { mcpReq } = context
    const scope: Scope = {
      server,
      ask: (request, signal) => mcpReq.send(request, rawResult, { signal, timeout: QUESTION_MS }),
      tell: (notification) => void mcpReq.notify(this.translate(server, notification)).catch(() => {})
    }
    try {
      const progress = (each: Progress) => tellProgress(context, each)
      const asking = {
        ...this.#context(server, context, lane, { signal: mcpReq.signal, progress }),
        prompter: askingPrompter(this.capabilities(context), scope.ask)
      }
      return withNamedQuestions(server, await lane.during(scope, () => job(asking, lane)))
    } finally {
      release()
    }
  }

  /** Translates a server's notification into the client's names. */
  translate(server: string, { method, params = {} }: PeerNotification): PeerNotification {
    if (this.exposed.only !== undefined) return { method, params }
    if (typeof params.uri === 'string')
      return { method, params: { ...params, uri: this.exposed.resources.of(server, params.uri) } }
    if (method !== 'notifications/message') return { method, params }
    return {
      method,
      params: { ...params, logger: typeof params.logger === 'string' ? `${server}/${params.logger}` : server }
    }
  }

  #borrow(server: string, context: RequestContext, mayAsk: boolean): Borrowed {
    const capabilities = this.capabilities(context)
    const level = levelOf(context.mcpReq.envelope)
    const { elicitation, sampling, roots } = capabilities
    const isModern = this.exposed.isModern(server)
    const asks = mayAsk && !isModern && (elicitation ?? sampling ?? roots) !== undefined
    const borrowed = this.lanes.borrow({
      server,
      caller: this.#caller,
      capabilities,
      isModern,
      alone: asks || level !== undefined
    })
    if (level !== undefined) borrowed.lane.setLevel([server], level).catch(() => {})
    return borrowed
  }

  #context(
    server: string,
    context: RequestContext,
    lane: ClientLane,
    { signal, progress }: Pick<HeldCall, 'signal' | 'progress'>
  ): CallContext {
    const { mcpReq } = context
    const { progressToken, ...carried } = mcpReq._meta ?? {}
    const meta = { ...carried, ...(this.exposed.isModern(server) ? this.#envelope(context, lane) : {}) }
    const requestState: string | undefined = mcpReq.requestState()
    const retry = {
      ...(mcpReq.inputResponses ? { inputResponses: mcpReq.inputResponses } : {}),
      ...(requestState === undefined ? {} : { requestState })
    }
    return {
      // A lane may have served another client before: only the request says whose it is now.
      caller: namedCaller(lane.caller, this.#server.getClientVersion()),
      signal,
      ...(Object.keys(meta).length > 0 ? { meta } : {}),
      ...(Object.keys(retry).length > 0 ? { retry } : {}),
      ...(progressToken === undefined ? {} : { onProgress: progress })
    }
  }

  #envelope(context: RequestContext, { level }: ClientLane): Record<string, unknown> {
    const { elicitation, sampling, roots } = this.capabilities(context)
    const capabilities = { ...(elicitation && { elicitation }), ...(sampling && { sampling }), ...(roots && { roots }) }
    return { [CLIENT_CAPABILITIES_META_KEY]: capabilities, ...(level ? { [LOG_LEVEL_META_KEY]: level } : {}) }
  }
}
