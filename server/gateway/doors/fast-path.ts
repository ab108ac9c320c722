/**
 * Recognizes plain tool calls, in any revision, that both doors answer themselves. The SDK would validate and copy each message
 * several times, which costs more than the call. Invariant: anything unusual or not certainly valid is left to the SDK.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
  type RequestId,
  SERVER_INFO_META_KEY
} from '@modelcontextprotocol/server'
import { isRecord } from '../../lib/is-record.ts'
import type { CallContext } from '../asking/tool-request.ts'
import { carriedMeta, serverIdentity, withContent } from '../execute/create-gateway-server.ts'
import type { Gateway } from '../execute/gateway.ts'

export interface FastCall {
  id: RequestId
  name: string
  args: Fields
  /** Without the fields that only the SDK uses. */
  meta: Fields
  progressToken?: string | number
  modern: boolean
  /** The name that the client gives itself; every call of the newer revision may carry it. */
  client?: { name: string; version: string }
}

type Fields = Record<string, unknown>

export const MODERN = '2026-07-28'
export const INTERNAL_ERROR = -32_603
const RESERVED = 'io.modelcontextprotocol/'
const ENVELOPE = new Set([PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY])
const IN_MESSAGE = new Set(['jsonrpc', 'id', 'method', 'params'])
const IN_PARAMS = new Set(['name', 'arguments', '_meta'])
const IN_CLIENT_INFO = new Set(['name', 'version', 'title'])

export function readFastCall(message: unknown): FastCall | undefined {
  if (!isRecord(message) || message.method !== 'tools/call' || message.jsonrpc !== '2.0') return undefined
  const { id, params } = message
  if (!isId(id) || !isRecord(params) || !hasOnly(message, IN_MESSAGE) || !hasOnly(params, IN_PARAMS)) return undefined
  const { name, arguments: args = {}, _meta = {} } = params
  if (typeof name !== 'string' || !isRecord(args) || !isRecord(_meta)) return undefined
  const modern = _meta[PROTOCOL_VERSION_META_KEY] !== undefined
  if (modern && !isPlainEnvelope(_meta)) return undefined
  const { progressToken, [CLIENT_INFO_META_KEY]: info, ...rest } = _meta
  if (info !== undefined && !modern) return undefined
  if (progressToken !== undefined && !isId(progressToken)) return undefined
  const meta: Fields = {}
  for (const [key, value] of Object.entries(rest)) {
    if (!key.startsWith(RESERVED)) meta[key] = value
    else if (!modern || !ENVELOPE.has(key)) return undefined
  }
  const client = isClientInfo(info) ? { name: info.name, version: info.version } : undefined
  return {
    id,
    name,
    args,
    meta,
    modern,
    ...(progressToken === undefined ? {} : { progressToken }),
    ...(client && { client })
  }
}

/** Every message of the newer revision says so. */
export function claimsModern(params: unknown): boolean {
  return isRecord(params) && isRecord(params._meta) && params._meta[PROTOCOL_VERSION_META_KEY] === MODERN
}

/** Never rejects. */
export async function answerFastCall(
  gateway: Gateway,
  version: string,
  { name, args, meta, modern }: FastCall,
  context: Omit<CallContext, 'meta'>
): Promise<Fields> {
  const result = withContent(await gateway.call(name, args, { ...context, ...carriedMeta(meta) }))
  return modern ? modernResult(result, serverIdentity(version)) : result
}

/** The part of a JSON-RPC message that says how the call ended. */
export function outcomeOf<T>(call: Promise<T>) {
  return call.then(
    (result) => ({ result }),
    (error) => ({ error: wireErrorOf(error) })
  )
}

function wireErrorOf(error: unknown): { code: number; message: string; data?: unknown } {
  if (!(error instanceof ProtocolError)) return { code: INTERNAL_ERROR, message: 'Internal error' }
  const { code, message, data } = error
  return { code, message, ...(data === undefined ? {} : { data }) }
}

/** Adds what the newer revision requires in every result. */
function modernResult(result: Fields, serverInfo: Fields): Fields {
  const { resultType = 'complete', _meta } = result
  return { ...result, resultType, _meta: { [SERVER_INFO_META_KEY]: serverInfo, ...(isRecord(_meta) ? _meta : {}) } }
}

/** A client with special capabilities may be asked to use them: that needs the SDK. */
function isPlainEnvelope(meta: Fields): boolean {
  const { [CLIENT_INFO_META_KEY]: info, [CLIENT_CAPABILITIES_META_KEY]: capabilities } = meta
  if (meta[PROTOCOL_VERSION_META_KEY] !== MODERN) return false
  if (!isRecord(capabilities) || Object.keys(capabilities).length > 0) return false
  if (info === undefined) return true
  return (
    isClientInfo(info) && hasOnly(info, IN_CLIENT_INFO) && (info.title === undefined || typeof info.title === 'string')
  )
}

function isClientInfo(info: unknown): info is Fields & { name: string; version: string } {
  return isRecord(info) && typeof info.name === 'string' && typeof info.version === 'string'
}

function isId(value: unknown): value is string | number {
  return typeof value === 'string' || Number.isSafeInteger(value)
}

function hasOnly(fields: Fields, allowed: Set<string>): boolean {
  for (const key in fields) if (!allowed.has(key)) return false
  return true
}
