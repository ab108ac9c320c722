export type TraceMeta = Record<string, unknown>

export interface SpanAbout {
  /** The client's trace context, used if no span is open here. */
  parent?: TraceMeta | undefined
  /** Names only, never arguments or answers. */
  attributes?: Record<string, string | undefined>
}

/** Creates spans for the parts of a call. If tracing is off, no spans are created and trace context is passed through unchanged. */
export interface Tracing {
  /** Runs the job in a new span under the current one. */
  span<T>(name: string, about: SpanAbout, job: () => Promise<T>): Promise<T>
  /** Returns the `_meta` for an outgoing request, so that the trace continues from the current span. */
  carry(meta: TraceMeta | undefined): TraceMeta | undefined
  close(): Promise<void>
}

const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
const MAX_STATE = 512

/** Reads the trace context from HTTP headers into the form of `_meta`. */
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
