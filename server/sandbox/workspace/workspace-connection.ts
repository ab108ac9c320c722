import type { Client } from '@modelcontextprotocol/client'
import type { z } from 'zod'
import {
  MAX_RESOLVED_PATHS,
  type OutputChunk,
  type PathTarget,
  TARGET_META,
  WORKSPACE_METHODS
} from '../../../workspace-server/protocol.ts'
import { isAppError } from '../../lib/errors.ts'
import { isRecord } from '../../lib/is-record.ts'
import type { CallOptions, WorkspaceConnection } from '../port.ts'
import { translateCallError } from './call-error.ts'
import {
  changesResult,
  emptyResult,
  fetchResult,
  fileChangeResult,
  limitsResult,
  reachResult,
  resolveResult,
  restoreResult,
  tidyResult,
  toolList,
  toolResult
} from './result-schema.ts'
import { connectionLost, type StreamTransport } from './stream-transport.ts'

const QUICK_MS = 10_000
/** Enough to scan or write a full workspace with half a CPU. */
const FILES_MS = 60_000
/**
 * The engine may keep a stream open although its server is gone (seen with gVisor, in a container killed while it woke up). So we
 * ask the engine during a call, and believe it when it says so twice: the last answers may still be in transit.
 */
const CHECK_EVERY_MS = 2000
/**
 * We also ping the server: a command can stop it with a signal, and the engine would report it as running forever. The time is
 * long enough for a server that shares a processor with a hundred others.
 */
const SILENCE_MS = 30_000
const MAX_OUTPUT_CHARS = 1024 * 1024

/** `isServed` asks the engine whether the server still runs. */
export function workspaceConnection(
  containerId: string,
  client: Client,
  transport: StreamTransport,
  isServed: () => Promise<boolean>
): WorkspaceConnection {
  const request = requester(client, transport, isServed)
  const quick = { timeoutMs: QUICK_MS }
  const files = { timeoutMs: FILES_MS }
  return {
    containerId,
    closed: transport.closed,
    get isOpen() {
      return transport.isOpen
    },
    get isTampered() {
      return transport.counters.forged > 0
    },
    listTools: () => request('tools/list', {}, toolList, quick),
    callTool(name, args, options) {
      const meta = options.expected ? { _meta: { [TARGET_META]: options.expected } } : {}
      return request('tools/call', { name, arguments: args, ...meta }, toolResult, options)
    },
    claim: async (epoch) => void (await request(WORKSPACE_METHODS.claim, { epoch }, emptyResult, quick)),
    limits: () => request(WORKSPACE_METHODS.limits, {}, limitsResult, quick),
    reach: async (params) => (await request(WORKSPACE_METHODS.reach, params, reachResult, quick)).reached,
    changes: (params) => request(WORKSPACE_METHODS.changes, params, changesResult, files),
    fetch: (params) => request(WORKSPACE_METHODS.fetch, params, fetchResult, files),
    restore: (params) => request(WORKSPACE_METHODS.restore, params, restoreResult, files),
    async resolve(paths) {
      const targets: PathTarget[] = []
      for (let from = 0; from < paths.length; from += MAX_RESOLVED_PATHS) {
        const some = paths.slice(from, from + MAX_RESOLVED_PATHS)
        targets.push(...(await request(WORKSPACE_METHODS.resolve, { paths: some }, resolveResult(some.length), quick)))
      }
      return targets
    },
    tidy: async () => (await request(WORKSPACE_METHODS.tidy, {}, tidyResult, quick)).isTidy,
    change: (change) => request(WORKSPACE_METHODS.change, change, fileChangeResult, files),
    ping: async () => void (await request('ping', {}, emptyResult, quick)),
    close: () => transport.close()
  }
}

/** Sends requests, each with a deadline and, while it runs, a watch over the server. */
function requester(client: Client, transport: StreamTransport, isServed: () => Promise<boolean>) {
  return async <T>(method: string, params: object, schema: z.ZodType<T>, options: CallOptions): Promise<T> => {
    const { signal, timeoutMs, onOutput } = options
    if (!transport.isOpen) throw connectionLost(undefined, false)
    signal?.throwIfAborted()
    const onprogress = (progress: { message?: unknown }) => {
      const chunk = readOutputChunk(progress.message)
      if (chunk) onOutput?.(chunk)
    }
    const endWatch = watch(client, transport, isServed)
    try {
      // client.callTool() would list the tools first and compile a validator for each.
      return await client.request({ method, params: { ...params } }, schema, {
        timeout: timeoutMs,
        ...(signal ? { signal } : {}),
        ...(onOutput ? { onprogress } : {})
      })
    } catch (error) {
      throw translateCallError(error, method, signal)
    } finally {
      endWatch()
    }
  }
}

/** Closes the connection if its server is gone or silent. Returns a function that ends the watch. */
function watch(client: Client, transport: StreamTransport, isServed: () => Promise<boolean>): () => void {
  let isOver = false
  let isLooking = false
  let isAsking = false
  let timesGone = 0
  const look = async () => {
    // If the engine does not respond, we learn nothing about the server.
    timesGone = (await isServed().catch(() => true)) ? 0 : timesGone + 1
    if (timesGone === 2) await transport.close()
    isLooking = false
  }
  const ask = async () => {
    if (!(await answers(client)) && !isOver) await transport.close()
    isAsking = false
  }
  const timer = setInterval(() => {
    if (!isLooking) void look()
    if (!isAsking) void ask()
    isLooking = isAsking = true
  }, CHECK_EVERY_MS)
  return () => {
    isOver = true
    clearInterval(timer)
  }
}

/** Any response will do, even an error. */
async function answers(client: Client): Promise<boolean> {
  return client.request({ method: 'ping', params: {} }, emptyResult, { timeout: SILENCE_MS }).then(
    () => true,
    (error) => !isAppError(translateCallError(error, 'ping'), 'call_timeout')
  )
}

/** Reads live output of a command from a progress notification's message; returns null for anything else. */
export function readOutputChunk(message: unknown): OutputChunk | null {
  if (typeof message !== 'string' || message.length > MAX_OUTPUT_CHARS) return null
  let value: unknown
  try {
    value = JSON.parse(message)
  } catch {
    return null
  }
  if (!isRecord(value) || typeof value.text !== 'string') return null
  const { stream, text } = value
  return stream === 'stdout' || stream === 'stderr' ? { stream, text } : null
}
