export type TraceMeta = Record<string, unknown>

export interface SpanAbout {
  /** Where there is no span open here: the client's trace context. */
  parent?: TraceMeta | undefined
  /** Names only; never an argument or an answer. */
  attributes?: Record<string, string | undefined>
}

/** Spans of what a call does. Where it is off there is none, and trace context goes through as it came. */
export interface Tracing {
  /** Does the job in a span of its own, under the one that is open. */
  span<T>(name: string, about: SpanAbout, job: () => Promise<T>): Promise<T>
  /** `_meta` for a request that is sent now: the trace goes on from the span that is open. */
  carry(meta: TraceMeta | undefined): TraceMeta | undefined
  close(): Promise<void>
}

const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
const MAX_STATE = 512

/** As an HTTP client gives it, in the words of `_meta`. */
export function traceFromHeaders(header: (name: string) => string | null | undefined): TraceMeta {
  const traceparent = header('traceparent')
  const tracestate = header('tracestate')
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return {}
  return { traceparent, ...(tracestate && tracestate.length <= MAX_STATE ? { tracestate } : {}) }
}

export function traced<T>(
  tracing: Tracing | undefined,
  name: string,
  about: SpanAbout,
  job: () => Promise<T>
): Promise<T> {
  return tracing ? tracing.span(name, about, job) : job()
}
