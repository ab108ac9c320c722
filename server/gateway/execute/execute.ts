/**
 * `execute`: from a named tool or a sentence to a child's own result. Invariant: a tool that nobody named runs only if it reads,
 * or after the client's user has approved it; a named tool that may write gets values only from `params` or from a plain order.
 */

import type { StoredTool } from '../../catalog/stored-tools.ts'
import { unknownServer } from '../../connections/connections.ts'
import type { RawResult } from '../../connections/wire/call-input.ts'
import { AppError } from '../../lib/errors.ts'
import { didYouMean } from '../../lib/near-names.ts'
import { isSmallTalk } from '../../routing/words/small-talk.ts'
import type { CallContext, FoundBy } from '../asking/tool-request.ts'
import type { GatewayServices } from '../gateway-services.ts'
import { type ResolvedParams, resolveParams } from '../params/resolve-params.ts'
import { canConfirm, reads, unclearEnds, whyConfirm, whyNotFill } from './confirm-route.ts'
import type { Discovery } from './discovery.ts'
import { asksAbout, doubtAbout, withoutValues } from './doubtful-sentence.ts'
import { doubtAboutRunning } from './plain-order.ts'
import { PLAUSIBLE, type RecentOffers } from './recent-offers.ts'
import { type RouteSummary, recordDecision } from './record-route.ts'
import { CANDIDATES, decide, SURE } from './route-request.ts'
import { refuseDenied, runTool } from './run-tool.ts'
import { saysOnlyWhat } from './sentence-form.ts'

export interface ExecuteInput {
  request?: string | undefined
  server?: string | undefined
  tool?: string | undefined
  /** Undefined: the sentence has all there is. */
  params: Record<string, unknown> | undefined
}

interface Candidate {
  server: string
  tool: string
  confidence: number
  description: string
}

export type Executed =
  | { kind: 'result'; result: RawResult; route: RouteTaken }
  | { kind: 'question'; question: Record<string, unknown> }

interface RouteTaken {
  server: string
  tool: string
  confidence: number
  attempts: number
  approvedBy?: string
  definitionChanged?: true
  /** Servers that were still starting when the tool was found. */
  pending?: string[]
  /** The arguments that were sent, if some are not the caller's, and what filled in which. */
  params?: Record<string, unknown>
  filledBy?: Record<string, string>
}

interface Route {
  server: string
  tool: StoredTool
  confidence: number
  /** Named by the caller, not found by us. */
  explicit: boolean
  /** Only past choices lead to it. */
  isLearned?: boolean
  /** The candidates that it was chosen from. */
  candidates: Candidate[]
  /** Servers that were still starting then. */
  pending?: string[]
}

interface NoRoute {
  candidates: Candidate[]
  pending?: string[]
  reason?: string
}

type Choice = Route & ResolvedParams & { found?: FoundBy }

type Status = 'needs_choice' | 'needs_params' | 'needs_confirmation'
type Question = { status: Status; candidates: Candidate[] } & Record<string, unknown>

const DESCRIPTION_CHARS = 300
const SMALL_TALK = 'This asks for nothing that a tool could do; nothing was run.'
const HOW_TO_CONFIRM =
  'Nothing was run. If this is the right call, call again with "server", "tool" and all "params" that it needs ({} if none).'

export async function execute(
  core: GatewayServices,
  discovery: Discovery,
  input: ExecuteInput,
  context: CallContext,
  offers: RecentOffers
): Promise<Executed> {
  const { request, server: wanted, tool: named } = input
  const about = { caller: context.caller, by: 'execute', request, server: wanted, tool: named } as const
  const choice = await recordDecision(
    core,
    about,
    () => choose(core, discovery, input, context),
    (chosen) => summarizeChoice(chosen, named)
  )
  if ('status' in choice) {
    if (request !== undefined) {
      const { owner } = context.caller
      const plausible = core.router.find(request, { limit: PLAUSIBLE, owner }).matches
      offers.offered(context.caller, request, offeredBy(choice), plausible)
    }
    return { kind: 'question', question: choice }
  }
  const { server, tool, confidence, explicit, params, filledBy, requiresApproval, found, pending } = choice
  const toolRequest = { server, tool, args: params, filledBy, requiresApproval, found }
  const { result, ...called } = await runTool(core, toolRequest, context)
  if (result.isError !== true) {
    const offered = explicit ? offers.take(context.caller, { server, tool: tool.name }) : undefined
    const isChosen = explicit || called.approvedBy !== undefined
    learnFrom(core, isChosen ? (request ?? offered) : undefined, { server, tool: tool.name }, context.caller.owner)
  }
  return {
    kind: 'result',
    result,
    route: {
      ...{ ...called, tool: tool.name, confidence },
      ...(filledBy ? { params, filledBy } : {}),
      ...(pending ? { pending } : {})
    }
  }
}

/** A request that says not to do something, or asks about a tool, is not an example of what the tool is for. */
export function learnFrom(
  core: Pick<GatewayServices, 'learn'>,
  request: string | undefined,
  { server, tool }: { server: string; tool: string },
  owner: string,
  session?: string
): void {
  if (request !== undefined && !doubtAbout(request)) core.learn(request, server, tool, owner, session)
}

/** The tools that a question names. */
function offeredBy({ server, tool, candidates }: Question): { server: string; tool: string }[] {
  const found = typeof server === 'string' && typeof tool === 'string' ? [{ server, tool }] : []
  return [...found, ...candidates.map((each) => ({ server: each.server, tool: each.tool }))]
}

/** Finds the tool and its parameters, or returns what the caller must answer first. */
async function choose(
  core: GatewayServices,
  discovery: Discovery,
  input: ExecuteInput,
  context: CallContext
): Promise<Choice | Question> {
  const found = await findRoute(core, discovery, input, context)
  if (!('tool' in found)) return { status: 'needs_choice', ...deadEnd(core, found), ...found }
  const { server, tool, confidence, explicit, pending } = found
  const { name, inputSchema } = tool
  refuseDenied(core, server, name)
  const isRead = input.request !== undefined && (await reads(core, server, tool))
  const settled = await resolveParams(core, { ...found, isRead }, input, context)
  const { params, problems, filledBy } = settled
  const answer = {
    server,
    tool: name,
    params,
    confidence,
    ...(input.request !== undefined && asksAbout(input.request, tool) ? { explanation: explain(tool) } : {}),
    ...(filledBy ? { filledBy } : {}),
    ...(pending ? { pending } : {})
  }
  if (problems.length > 0) {
    const reasons = problems.map(({ path, reason }) => `${path} ${reason}`)
    const candidates = otherCandidates(core, found, input.request)
    const doubt = input.request === undefined ? undefined : doubtOf(input.request, found, isRead)
    const why = [doubt, unclearEnds(settled)].filter((each) => each !== undefined)
    const reason = why.length === 0 ? {} : { reason: [...why, HOW_TO_CONFIRM].join(' ') }
    return { status: 'needs_params', ...answer, ...reason, problems: reasons, inputSchema, candidates }
  }
  const { request } = input
  if (request === undefined) return { ...found, ...settled }
  const isServerNamed = input.server !== undefined
  const inQuestion = { ...found, ...settled, request, isServerNamed, isRead, serverConfidence: serverConfidence(found) }
  const reason = explicit ? whyNotFill(inQuestion, input.params) : whyConfirm(core, inQuestion)
  if (explicit && reason === undefined) return { ...found, ...settled }
  const foundBy = { request, confidence, reason, isNamed: explicit }
  if (reason === undefined) return { ...found, ...settled, found: foundBy }
  if (canConfirm(context, params)) return { ...found, ...settled, requiresApproval: true, found: foundBy }
  const candidates = otherCandidates(core, found, input.request)
  return { status: 'needs_confirmation', ...answer, reason: `${reason} ${HOW_TO_CONFIRM}`, candidates }
}

/** The chance that the request means this server, whichever of its tools. */
function serverConfidence({ server, tool, confidence, candidates }: Route): number {
  const others = candidates.filter((other) => other.server === server && other.tool !== tool.name)
  return others.reduce((sum, other) => sum + other.confidence, confidence)
}

/** The server's description of the tool, shortened for a question about it. */
function explain({ description }: StoredTool): string {
  return description.slice(0, DESCRIPTION_CHARS)
}

function doubtOf(request: string, { tool, explicit }: Route, isRead: boolean): string | undefined {
  return explicit && !isRead ? doubtAboutRunning(request, tool) : doubtAbout(request)
}

/** Without candidates, or while servers are starting, the caller needs a hint what to do next. */
function deadEnd({ enrichment }: GatewayServices, { candidates, pending = [] }: NoRoute): { reason?: string } {
  if (pending.length > 0) {
    const named = pending.slice(0, CANDIDATES).join(', ')
    const or = candidates.length > 0 ? ', or name "server" and "tool"' : ''
    return {
      reason: `Nothing was run. Servers that may have a tool for this are still starting (${named}): call again${or}.`
    }
  }
  if (candidates.length > 0) return {}
  const english = enrichment ? '' : ', or say it in English (other languages need EMBEDDING_MODEL)'
  return {
    reason: `No tool fits this request; nothing was run. See "list_capabilities" and name "server" and "tool"${english}.`
  }
}

/** Other tools that may be meant. If a tool was named, they are found by the request. Starts nothing. */
function otherCandidates(
  core: GatewayServices,
  { server, tool, candidates, explicit }: Route,
  request?: string
): Candidate[] {
  const near = explicit
    ? core.router.find(request ?? tool.name, { limit: CANDIDATES + 1 }).matches.map((match) => toCandidate(core, match))
    : candidates
  return near.filter((other) => other.server !== server || other.tool !== tool.name).slice(0, CANDIDATES)
}

/** If the caller named the tool, we made no decision; the call itself is recorded anyway. */
function summarizeChoice(choice: Choice | Question, wanted: string | undefined): RouteSummary | undefined {
  if ('status' in choice) {
    const { status, candidates, server, tool } = choice
    const named = typeof server === 'string' && typeof tool === 'string' ? { server, tool } : {}
    const outcome = status === 'needs_choice' && wanted === undefined ? 'abstained' : status
    return { candidates, outcome, ...named }
  }
  const { server, tool, candidates, explicit } = choice
  return explicit ? undefined : { candidates, outcome: 'chosen', server, tool: tool.name }
}

async function findRoute(
  core: GatewayServices,
  discovery: Discovery,
  input: ExecuteInput,
  context: CallContext
): Promise<Route | NoRoute> {
  const { server, tool, request } = input
  if (server !== undefined && core.index.entry(server) === undefined) throw noServer(core, server)
  if (server !== undefined && tool !== undefined) return namedRoute(core, server, tool, context)
  if (tool !== undefined) return byToolName(core, discovery, tool, context)
  if (request === undefined) {
    throw new AppError('invalid', 'invalid_request', 'Give "request", or "server" and "tool".')
  }
  return bySentence(core, discovery, input, context)
}

/** Says why its entry is left out, or which server may be meant. */
export function noServer({ index, leftOut }: GatewayServices, server: string): AppError {
  const error = unknownServer(server)
  const why = leftOut?.(server)
  const names = index.entries().map(({ name }) => name)
  const hint = why === undefined ? didYouMean(server, names) : ` Its entry is left out: ${why}.`
  return new AppError('not-found', 'unknown_server', `${error.message}${hint}`)
}

export async function namedRoute(
  core: GatewayServices,
  server: string,
  tool: string,
  context: CallContext
): Promise<Route> {
  const known = core.index.tool(server, tool)
  if (known) return { server, tool: known, confidence: 1, explicit: true, candidates: [] }
  // Not seen yet, or new since: ask the server itself.
  const listed = (await core.connections.list(server, context)).find(({ name }) => name === tool)
  if (listed) return { server, tool: listed, confidence: 1, explicit: true, candidates: [] }
  const near = core.router.find(tool, { server, limit: 3 }).matches.map((match) => match.tool)
  const hint = near.length > 0 ? ` Did you mean ${near.join(', ')}?` : ''
  throw new AppError('not-found', 'unknown_tool', `The server "${server}" has no tool "${tool.slice(0, 100)}".${hint}`)
}

async function byToolName(
  core: GatewayServices,
  discovery: Discovery,
  tool: string,
  context: CallContext
): Promise<Route | NoRoute> {
  const isSeen = core.index.serversWith(tool).length > 0
  const { pending } = isSeen ? { pending: [] } : await discovery.discover(core, context)
  const servers = core.index.serversWith(tool)
  const [only] = servers
  if (servers.length === 1 && only !== undefined) return namedRoute(core, only, tool, context)
  if (servers.length > 1) {
    return {
      candidates: servers.slice(0, CANDIDATES).map((server) => candidate(core, server, tool, 1 / servers.length))
    }
  }
  const still = pending.length > 0 ? ` Still starting: ${pending.slice(0, CANDIDATES).join(', ')}.` : ''
  const reason = `No server has a tool ${JSON.stringify(tool.slice(0, 100))}.${still}`
  const { matches } = core.router.find(tool, { limit: CANDIDATES })
  if (matches.length === 0) throw new AppError('not-found', 'unknown_tool', reason)
  const candidates = matches.map((match) => toCandidate(core, match))
  return { candidates, reason: `${reason} Nothing was run.`, ...(pending.length > 0 ? { pending } : {}) }
}

async function bySentence(
  core: GatewayServices,
  discovery: Discovery,
  { request = '', server, params: given = {} }: ExecuteInput,
  context: CallContext
): Promise<Route | NoRoute> {
  if (isSmallTalk(request)) return { candidates: [], reason: SMALL_TALK }
  const { pending, starting } = await discovery.discover(core, context)
  const options = { owner: context.caller.owner, ...(server === undefined ? {} : { server }) }
  const sentence = { request, given, options, signal: context.signal }
  const { matches, abstained, isLearned } = await decide(core, sentence)
  const [best] = matches
  const tool = best && core.index.tool(best.server, best.tool)
  const candidates = matches.map((match) => toCandidate(core, match))
  const wait = pending.length > 0 ? { pending } : {}
  if (!best || !tool || abstained) return { candidates, ...wait }
  const confidence = roundConfidence(best.confidence)
  const found = { server: best.server, tool, confidence, explicit: false, isLearned }
  // A server that has not listed its tools yet may have the right one; the confidence can't know that.
  const mayBeOther = server === undefined && starting.length > 0
  const isClear = confidence >= SURE && !isLearned && saysOnlyWhat(best.server, tool, withoutValues(request))
  if (mayBeOther && !isClear && (await reads(core, best.server, tool))) return { candidates, pending: starting }
  return { ...found, candidates, ...wait }
}

function toCandidate(core: GatewayServices, { server, tool, confidence }: Omit<Candidate, 'description'>): Candidate {
  return candidate(core, server, tool, confidence)
}

function candidate(core: GatewayServices, server: string, tool: string, confidence: number): Candidate {
  const description = (core.index.tool(server, tool)?.description ?? '').slice(0, DESCRIPTION_CHARS)
  return { server, tool, confidence: roundConfidence(confidence), description }
}

/** More digits would pretend to be precise, and cost tokens. */
export function roundConfidence(confidence: number): number {
  return Math.round(confidence * 1000) / 1000
}
