/** Sends spans to an OpenTelemetry collector. The OpenTelemetry packages are large: they load only if a collector is configured. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context, Span } from '@opentelemetry/api'
import { isAppError } from '../../lib/errors.ts'
import type { TraceMeta, Tracing } from './tracing.ts'

export interface TracingOptions {
  /** Base address of the collector, without `/v1/traces`. */
  endpoint: string
  version: string
}

const SEND_MS = 1000
const CLOSE_MS = 2000

export async function openTracing({ endpoint, version }: TracingOptions): Promise<Tracing> {
  const [api, { OTLPTraceExporter }, { resourceFromAttributes }, { BasicTracerProvider, BatchSpanProcessor }] =
    await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
      import('@opentelemetry/sdk-trace-base')
    ])
  const { trace, isSpanContextValid, ROOT_CONTEXT, SpanStatusCode } = api
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces`, timeoutMillis: CLOSE_MS })
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'mcp-orchestrator', 'service.version': version }),
    spanProcessors: [new BatchSpanProcessor(exporter, { scheduledDelayMillis: SEND_MS })]
  })
  const tracer = provider.getTracer('mcp-orchestrator', version)
  const open = new AsyncLocalStorage<Span>()
  return {
    async span(name, { parent, attributes = {} }, job) {
      const above = open.getStore()
      const span = tracer.startSpan(
        name,
        { attributes },
        above ? trace.setSpan(ROOT_CONTEXT, above) : remote(api, parent)
      )
      try {
        return await open.run(span, job)
      } catch (error) {
        // Only the code: the message may quote what a server said.
        span.setStatus({ code: SpanStatusCode.ERROR, message: isAppError(error) ? error.code : 'internal' })
        throw error
      } finally {
        span.end()
      }
    },
    carry(meta) {
      const span = open.getStore()?.spanContext()
      if (!span || !isSpanContextValid(span)) return meta
      const flags = span.traceFlags.toString(16).padStart(2, '0')
      return { ...meta, traceparent: `00-${span.traceId}-${span.spanId}-${flags}` }
    },
    async close() {
      const timeout = new Promise<void>((done) => setTimeout(done, CLOSE_MS).unref())
      await Promise.race([provider.shutdown().catch(() => {}), timeout])
    }
  }
}

type Api = typeof import('@opentelemetry/api')

function remote({ trace, createTraceState, isSpanContextValid, ROOT_CONTEXT }: Api, meta: TraceMeta = {}): Context {
  const { traceparent, tracestate } = meta
  const [, traceId, spanId, flags] = typeof traceparent === 'string' ? traceparent.split('-') : []
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT
  const context = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) || 0,
    isRemote: true,
    ...(typeof tracestate === 'string' ? { traceState: createTraceState(tracestate) } : {})
  }
  return isSpanContextValid(context) ? trace.setSpanContext(ROOT_CONTEXT, context) : ROOT_CONTEXT
}
