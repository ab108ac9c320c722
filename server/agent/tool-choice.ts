/**
 * Which tools the model is offered. If there are more than it can choose from: the sandbox's own, those that were offered or used
 * before, the best matches for the message, and two tools that find and run the others. Within a conversation the list only grows
 * and keeps its order, so that prompt caches hold. It follows from the log, so every instance comes to the same list.
 */

import type { SessionEvent } from '../../contract/events.ts'
import { PROGRAMS, ROUTER, WORKSPACE } from '../../contract/own-sources.ts'
import type { CallEntry } from '../../contract/transcript.ts'
import type { OfferedTool } from '../calls/offered-tool.ts'
import { estimateTools } from './trim-history.ts'

export interface ToolName {
  server: string
  name: string
}

export interface ToolLimit {
  maxTools: number
  /** Limit for the definitions of all offered tools together. */
  maxTokens: number
}

export interface ToolChoice {
  tools: OfferedTool[]
  /** The tools that are new in the list, for the log. */
  added: ToolName[]
  /** Whether there are tools that only `find_tool` finds. */
  isPartial: boolean
}

/** The tools that this conversation has offered so far. */
export function offeredBefore(recent: readonly SessionEvent[]): ToolName[] {
  return recent.flatMap((event) => (event.type === 'tools:offered' ? event.data.tools : []))
}

/** The tools of servers that these calls used. */
export function usedTools(calls: Iterable<CallEntry>): ToolName[] {
  return [...calls].flatMap(({ server, name }) => (isOfServer({ server }) ? [{ server, name }] : []))
}

/** Whether all tools may be offered, so that nothing needs to be chosen. */
export function isWithin(all: readonly OfferedTool[], { maxTools, maxTokens }: ToolLimit): boolean {
  const tools = all.filter(({ server }) => server !== ROUTER)
  return tools.length <= maxTools && estimateTools(tools) <= maxTokens
}

/** `all` includes the tools of `ROUTER`. `wanted` are the tools to add if not all can be offered, most wanted first. */
export function chooseTools(
  all: readonly OfferedTool[],
  before: readonly ToolName[],
  wanted: readonly ToolName[],
  limit: ToolLimit
): ToolChoice {
  const isPartial = !isWithin(all, limit)
  const hasRouter = isPartial || before.some(({ server }) => server === ROUTER)
  const always = all.filter((tool) => isAlways(tool) || (hasRouter && tool.server === ROUTER))
  const known = new Map(all.map((tool) => [keyOf(tool), tool]))
  const wishes = isPartial ? wanted : all.filter(isOfServer)
  const order = new Map<string, ToolName>()
  for (const each of [...before, ...always.filter(({ server }) => server === ROUTER), ...wishes])
    order.set(keyOf(each), each)
  const tools = always.filter(isAlways)
  let count = always.length
  let tokens = estimateTools(always)
  const offered = new Set(before.map(keyOf))
  for (const [key, { server }] of order) {
    const tool = known.get(key)
    // A tool that is gone keeps its place, because its server may come back. If all tools fit, all are offered.
    if (!tool && !(isPartial && offered.has(key))) continue
    const size = tool ? estimateTools([tool]) : 0
    const isOurs = server === ROUTER
    if (!isOurs && (count + 1 > limit.maxTools || tokens + size > limit.maxTokens)) continue
    count += isOurs ? 0 : 1
    tokens += isOurs ? 0 : size
    if (tool) tools.push(tool)
  }
  const added = tools.filter((tool) => !isAlways(tool) && !offered.has(keyOf(tool)))
  return { tools, added: added.map(({ server, name }) => ({ server, name })), isPartial: hasRouter }
}

function isOfServer(tool: Pick<ToolName, 'server'>): boolean {
  return !isAlways(tool) && tool.server !== ROUTER
}

/** Tools of the sandbox, and the one that runs programs. */
function isAlways({ server }: Pick<ToolName, 'server'>): boolean {
  return server === WORKSPACE || server === PROGRAMS
}

function keyOf({ server, name }: ToolName): string {
  return JSON.stringify([server, name])
}
