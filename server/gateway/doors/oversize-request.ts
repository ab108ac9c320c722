/** Finds the id of a request of which only the two ends are left. */
import type { RequestId } from '@modelcontextprotocol/server'
import type { OversizeLine } from '../../lib/streams/line-reader.ts'

const VERSION = String.raw`"jsonrpc"\s*:\s*"2\.0"\s*,\s*`
const METHOD = String.raw`"method"\s*:\s*"[^"\\]{1,200}"\s*,`
const ID = String.raw`"id"\s*:\s*(?:"([^"\\]{1,100})"|(-?\d{1,15}))\s*`
const IS_REQUEST = new RegExp(String.raw`^\s*\{\s*(?:${VERSION})?${METHOD}`)
const ID_FIRST = new RegExp(String.raw`^\s*\{\s*(?:${VERSION})?${ID},\s*(?:${VERSION})?${METHOD}`)
const ID_SECOND = new RegExp(String.raw`^\s*\{\s*(?:${VERSION})?${METHOD}\s*${ID},`)
/** Right before the last brace, so it belongs to the message and not to something in it. */
const ID_LAST = new RegExp(String.raw`[{},\]]\s*(?:${VERSION})?${ID}\}\s*$`)

/** Undefined unless it is certain: a wrong id would end another request. */
export function oversizeRequestId({ head, tail }: Pick<OversizeLine, 'head' | 'tail'>): RequestId | undefined {
  const [start, end] = [head.toString('latin1'), tail.toString('latin1')]
  const found = ID_FIRST.exec(start) ?? ID_SECOND.exec(start) ?? (IS_REQUEST.test(start) ? ID_LAST.exec(end) : null)
  const [, text, digits] = found ?? []
  return text ?? (digits === undefined ? undefined : Number(digits))
}
