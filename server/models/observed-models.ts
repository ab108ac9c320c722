import type { Cost, Models, StepEvent, StepRequest, TokenUsage } from './port.ts'

export interface StepReport extends Partial<TokenUsage & Cost> {
  provider: string
  ms: number
  error?: unknown
}

/** Reports every step of the models when it ends. A step that its reader abandons counts as ended, without an error. */
export function observedModels(models: Models, report: (step: StepReport) => void): Models {
  return {
    catalog: (options) => models.catalog(options),
    resolve: (requested) => models.resolve(requested),
    prove: (model, signal) => models.prove(model, signal),
    costOf: (model, usage) => models.costOf(model, usage),
    step: (request) => observedStep(models, request, report)
  }
}

async function* observedStep(
  models: Models,
  request: StepRequest,
  report: (step: StepReport) => void
): AsyncGenerator<StepEvent> {
  const began = performance.now()
  const step: Omit<StepReport, 'ms'> = { provider: request.model.split('/')[0] ?? '' }
  try {
    for await (const event of models.step(request)) {
      if (event.type === 'done') Object.assign(step, event.usage)
      yield event
    }
  } catch (error) {
    if (!request.signal.aborted) step.error = error
    throw error
  } finally {
    report({ ...step, ms: performance.now() - began })
  }
}
