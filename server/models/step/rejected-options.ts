import type { AppError } from '../../lib/errors.ts'
import type { StepRequest } from '../port.ts'

const OPTIONS = ['effort', 'temperature'] as const
type Option = (typeof OPTIONS)[number]

const REJECTED_STATUS = new Set([400, 422])
const ABOUT: Record<Option, RegExp> = {
  effort: /reason|think|effort|budget|summar/i,
  temperature: /temperature|sampling/i
}
/** Claude can't begin to think in the middle of a turn. This is about one conversation, not about the model. */
const ONLY_NOW = /must start with a thinking block/i
const MAX_MODELS = 1000

/**
 * Options that a model has rejected. No list says which model takes what, so a rejected request is sent again without the option.
 * If that works and the error was about the option, it is left out for this model from then on.
 */
export class RejectedOptions {
  readonly #known = new Map<string, Set<Option>>()
  /** Options that were left out of a request. If that request works, they are remembered as rejected. */
  readonly #suspected = new WeakMap<StepRequest, Option[]>()

  leaveOut(request: StepRequest): StepRequest {
    return [...(this.#known.get(request.model) ?? [])].reduce(dropped, { ...request })
  }

  /** The request for the next try, if the error may be about an option. */
  without(request: StepRequest, { code, message, details }: AppError): StepRequest | undefined {
    if (code !== 'model_request_rejected' || !REJECTED_STATUS.has(Number(details?.status))) return undefined
    const given = OPTIONS.filter((option) => request[option] !== undefined)
    const named = given.find((option) => ABOUT[option].test(message))
    const option = named ?? given[0]
    if (option === undefined) return undefined
    const next = dropped(request, option)
    const isLasting = named !== undefined && !ONLY_NOW.test(message)
    this.#suspected.set(next, [...(this.#suspected.get(request) ?? []), ...(isLasting ? [option] : [])])
    return next
  }

  worked(request: StepRequest): void {
    const options = this.#suspected.get(request) ?? []
    if (options.length === 0 || this.#known.size >= MAX_MODELS) return
    this.#known.set(request.model, new Set([...(this.#known.get(request.model) ?? []), ...options]))
  }
}

function dropped(request: StepRequest, option: Option): StepRequest {
  const { [option]: _, ...rest } = request
  return rest
}
