import type { PathTarget } from '../../../workspace-server/protocol.ts'
import { isRecord } from '../../lib/is-record.ts'
import { readTarget } from './result-schema.ts'

export interface WireError {
  code: number
  message: string
  data?: { code: string; target?: PathTarget }
}

/** The messages that a line from the sandbox may contain. All others are dropped. */
export type Incoming =
  | { kind: 'result'; id: string; result: Record<string, unknown> }
  | { kind: 'error'; id: string; error: WireError }
  | { kind: 'notification'; method: string; params: Record<string, unknown> }
  | { kind: 'request'; method: string }
  | { kind: 'noise' }

const INTERNAL_ERROR = -32603
const MAX_MESSAGE_CHARS = 2000
const NOISE: Incoming = { kind: 'noise' }

/** Classifies a parsed line and keeps only the fields that JSON-RPC defines. */
export function readIncoming(value: unknown): Incoming {
  if (!isRecord(value) || value.jsonrpc !== '2.0') return NOISE
  const { id, method } = value
  if (method !== undefined) {
    if (typeof method !== 'string') return NOISE
    if (id !== undefined) return { kind: 'request', method }
    return { kind: 'notification', method, params: isRecord(value.params) ? value.params : {} }
  }
  // Our ids are strings; a number or null can only be a guess.
  if (id === undefined) return NOISE
  if (typeof id !== 'string') return { kind: 'result', id: '', result: {} }
  if (value.error !== undefined) return { kind: 'error', id, error: readError(value.error) }
  if (isRecord(value.result)) return { kind: 'result', id, result: value.result }
  return { kind: 'error', id, error: { code: INTERNAL_ERROR, message: 'The answer has no result.' } }
}

function readError(error: unknown): WireError {
  if (!isRecord(error)) return { code: INTERNAL_ERROR, message: 'Unknown error' }
  const { code, message, data } = error
  return {
    code: typeof code === 'number' && Number.isSafeInteger(code) ? code : INTERNAL_ERROR,
    message: typeof message === 'string' ? message.slice(0, MAX_MESSAGE_CHARS) : 'Unknown error',
    ...(isRecord(data) && typeof data.code === 'string' ? { data: readData(data.code, data.target) } : {})
  }
}

function readData(code: string, target: unknown): NonNullable<WireError['data']> {
  const known = { code: code.slice(0, 64) }
  try {
    return target === undefined ? known : { ...known, target: readTarget(target) }
  } catch {
    return known
  }
}
