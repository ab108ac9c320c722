/**
 * The gateway: one MCP server in place of many. Owns the four tools and the form of their answers; routing, connections and the
 * tool index are below. Invariant: nothing is loaded or started before a tool is called.
 */

import { traced } from '../../calls/tracing/tracing.ts'
import { AppError } from '../../lib/errors.ts'
import { Lazy } from '../../lib/waiting/lazy.ts'
import { typeSignature } from '../../tools/type-signature.ts'
import { InputNeeded } from '../asking/client-prompter.ts'
import type { Continuations } from '../asking/continuations.ts'
import type { CallContext } from '../asking/tool-request.ts'
import { errorResult } from '../error-result.ts'
import type { GatewayOptions, GatewayServices, GatewayTool, TaskAction } from '../gateway-services.ts'
import { Discovery } from './discovery.ts'
import type { ExecuteInput } from './execute.ts'
import { changedFlag, listCapabilities } from './list-capabilities.ts'
import { PLAUSIBLE, RecentOffers } from './recent-offers.ts'
import { recordDecision } from './record-route.ts'
import { CODE_TOOLS, GATEWAY_TOOLS } from './tool-definitions.ts'

type Args = Record<string, unknown>

const ROUTE = 'mcp-orchestrator/route'
const DEFAULT_LIMIT = 5
const MAX_LIMIT = 50
const DESCRIPTION_CHARS = 300
const MAX_REQUEST = 4000

export class Gateway {
  readonly #options: GatewayOptions
  readonly #discovery = new Discovery()
  readonly #offers = new RecentOffers()
  /** Loaded with the first call, because its rules for sentences would delay the start. */
  readonly #routing = new Lazy(async () => {
    const [{ execute, roundConfidence }, { decide }] = await Promise.all([
      import('./execute.ts'),
      import('./route-request.ts')
    ])
    return { execute, roundConfidence, decide }
  })

  /** The tools that clients see. */
  readonly tools: GatewayTool[]

  constructor(options: GatewayOptions) {
    this.#options = options
    const extra = options.extraTools?.map(({ definition }) => definition) ?? []
    this.tools = extra.length > 0 ? [...CODE_TOOLS, ...extra] : GATEWAY_TOOLS
  }

  /** Answers `tools/call`: always with a result, because models read results. */
  async call(name: string, args: Args, context: CallContext): Promise<Record<string, unknown>> {
    try {
      return await this.#run(name, args, context)
    } catch (error) {
      // Not a failure: the client is about, and calls again.
      if (error instanceof InputNeeded) throw error
      return errorResult(error, this.#options, name)
    }
  }

  /** Some of the tools may answer with a task. */
  get hasTasks(): boolean {
    return (this.#options.extraTools?.length ?? 0) > 0
  }

  /** Answers a request about a task. Throws if there is no such task of this caller. */
  async task(action: TaskAction, taskId: string, context: CallContext): Promise<Record<string, unknown>> {
    const [tool] = this.#options.extraTools ?? []
    if (!tool) throw new AppError('not-found', 'unknown_run', 'There is no such task.')
    return tool.task(await this.#options.core(), action, taskId, context)
  }

  /** The continuations that seal the rounds of a call; throws if there is no store. */
  async continuations(): Promise<Continuations> {
    const { approvals } = await this.#options.core()
    if (approvals) return approvals.continuations
    throw new AppError('unavailable', 'approval_unavailable', 'There is no store here that could keep the question.')
  }

  async #run(name: string, args: Args, context: CallContext): Promise<Record<string, unknown>> {
    const [core] = await Promise.all([this.#options.core(), this.#routing.get()])
    const about = { parent: context.meta, attributes: { door: context.caller.door } }
    return traced(core.tracing, `gateway ${name}`, about, () => this.#runOn(core, name, args, context))
  }

  async #runOn(
    core: GatewayServices,
    name: string,
    args: Args,
    context: CallContext
  ): Promise<Record<string, unknown>> {
    refuseUnknownArguments(this.tools, name, args)
    const extra = this.#options.extraTools?.find(({ definition }) => definition.name === name)
    if (extra) return extra.call(core, args, context)
    if (name === 'execute') return this.#execute(core, readExecute(args), context)
    if (name === 'find_tool') return answer(await this.#findTool(core, args, context))
    if (name === 'list_capabilities') {
      await core.approvals?.definitions.refresh()
      return answer(listCapabilities(core, text(args, 'category')))
    }
    return answer(await explainTool(core, args, context))
  }

  async #execute(core: GatewayServices, input: ExecuteInput, context: CallContext): Promise<Record<string, unknown>> {
    const { execute } = await this.#routing.get()
    const done = await execute(core, this.#discovery, input, context, this.#offers)
    if (done.kind === 'question') return answer(done.question)
    const { result, route } = done
    const meta = typeof result._meta === 'object' && result._meta !== null ? result._meta : {}
    return { ...result, _meta: { ...meta, [ROUTE]: route } }
  }

  async #findTool(core: GatewayServices, args: Args, context: CallContext): Promise<Record<string, unknown>> {
    const query = text(args, 'query')
    if (query === undefined)
      throw new AppError('invalid', 'invalid_request', '"query" is missing. Say what you are looking for.')
    const limit = number(args, 'limit', 1, MAX_LIMIT) ?? DEFAULT_LIMIT
    const threshold = number(args, 'threshold', 0, 1)
    const about = { caller: context.caller, by: 'find_tool', request: query } as const
    const { roundConfidence, decide } = await this.#routing.get()
    const find = async () => {
      const { pending, failed } = await this.#discovery.discover(core, context)
      const options = { limit: Math.max(limit, PLAUSIBLE), owner: context.caller.owner }
      const decided = await decide(core, { request: query, given: {}, options, signal: context.signal })
      const isBelow = threshold !== undefined && (decided.matches[0]?.confidence ?? 0) < threshold
      return { pending, failed, ...decided, abstained: threshold === undefined ? decided.abstained : isBelow }
    }
    const {
      matches: all,
      abstained,
      pending,
      failed
    } = await recordDecision(core, about, find, (found) => ({
      candidates: found.matches.slice(0, limit),
      outcome: found.abstained ? 'abstained' : 'found'
    }))
    const matches = all.slice(0, limit)
    this.#offers.offered(context.caller, query, matches, all)
    await core.approvals?.definitions.refresh()
    return {
      matches: matches.map((match) => ({
        ...match,
        confidence: roundConfidence(match.confidence),
        description: match.description.slice(0, DESCRIPTION_CHARS),
        ...changedFlag(core, match.server, match.tool)
      })),
      abstained,
      pending,
      ...(failed.length > 0 ? { failed } : {}),
      ...leftOutTools(core)
    }
  }
}

/** Servers with tools that can't be found here. The names of these tools are not shown to the model: the server chose them. */
function leftOutTools({ index }: GatewayServices): Record<string, unknown> {
  const leftOut = index.entries().flatMap(({ name }) => {
    const count = index.record(name)?.leftOut?.length ?? 0
    const reason = 'Their names have hidden characters, or their definitions are invalid. See "servers test".'
    return count === 0 ? [] : [{ server: name, tools: count, reason }]
  })
  return leftOut.length > 0 ? { leftOut } : {}
}

async function explainTool(core: GatewayServices, args: Args, context: CallContext): Promise<Record<string, unknown>> {
  const server = text(args, 'server')
  const tool = text(args, 'tool')
  if (server === undefined || tool === undefined) {
    throw new AppError('invalid', 'invalid_request', 'Give "server" and "tool" as returned by find_tool.')
  }
  if (core.index.tools(server) === undefined) await core.connections.list(server, context)
  const known = core.index.tool(server, tool)
  if (known === undefined) {
    throw new AppError('not-found', 'unknown_tool', `The server "${server}" has no tool "${tool}".`)
  }
  if (args.format === 'typescript') return { server, tool, signature: typeSignature(server, known) }
  const { name, hash: _, ...definition } = known
  await core.approvals?.definitions.refresh()
  const examples = core.enrichment?.examplesOf(known.hash) ?? []
  const written = examples.length > 0 ? { exampleRequests: examples } : {}
  return { server, tool: name, ...definition, ...written, ...changedFlag(core, server, name) }
}

/** As data for programs, and the same as text for models. */
function answer(data: Record<string, unknown>): Record<string, unknown> {
  return { content: [{ type: 'text', text: JSON.stringify(data) }], structuredContent: data }
}

/** An argument that is ignored without a word would change what the call means. */
function refuseUnknownArguments(tools: GatewayTool[], name: string, args: Args): void {
  const known = Object.keys(tools.find((tool) => tool.name === name)?.inputSchema.properties ?? {})
  const unknown = Object.keys(args).find((argument) => !known.includes(argument))
  if (unknown === undefined) return
  const message = `${name} has no argument ${JSON.stringify(unknown.slice(0, 100))}. Its arguments are: ${known.join(', ')}.`
  throw new AppError('invalid', 'invalid_request', message)
}

function readExecute(args: Args): ExecuteInput {
  const { params } = args
  if (params !== undefined && (typeof params !== 'object' || params === null || Array.isArray(params))) {
    throw new AppError('invalid', 'invalid_request', '"params" must be an object with the parameters of the tool.')
  }
  return {
    request: text(args, 'request'),
    server: text(args, 'server'),
    tool: text(args, 'tool'),
    params: params ? { ...params } : undefined
  }
}

function text(args: Args, name: string): string | undefined {
  const value = args[name]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string' && value.length <= MAX_REQUEST) return value
  throw new AppError('invalid', 'invalid_request', `"${name}" must be a text of at most ${MAX_REQUEST} characters.`)
}

function number(args: Args, name: string, min: number, max: number): number | undefined {
  const value = args[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw new AppError('invalid', 'invalid_request', `"${name}" must be a number from ${min} to ${max}.`)
}
