import { isAppError } from '../lib/errors.ts'
import { withDeadline } from '../lib/waiting/deadline.ts'
import type { StepEvent, StepRequest } from './port.ts'

/** The minimum that OpenAI's Responses API accepts. */
const OUTPUT_TOKENS = 16
const BAD_VERDICT_MS = 10_000

const PROOF: Pick<StepRequest, 'system' | 'messages' | 'tools' | 'maxOutputTokens'> = {
  system: 'Answer with one word.',
  messages: [{ role: 'user', text: 'Say ok.' }],
  tools: [
    {
      name: 'noop',
      description: 'Does nothing. There is no need to call it.',
      inputSchema: { type: 'object', properties: {} }
    }
  ],
  maxOutputTokens: OUTPUT_TOKENS
}

/**
 * Remembers which models really answer a call with a tool available. Concurrent callers share one call. A failure is remembered
 * just long enough that many tabs don't repeat it.
 */
export class Proofs {
  readonly #verdicts = new Map<string, Promise<void>>()
  readonly #run: (request: StepRequest) => AsyncIterable<StepEvent>
  readonly #timeoutMs: number

  constructor(run: (request: StepRequest) => AsyncIterable<StepEvent>, timeoutMs: number) {
    this.#run = run
    this.#timeoutMs = timeoutMs
  }

  async prove(model: string, signal?: AbortSignal): Promise<void> {
    const verdict = this.#verdicts.get(model) ?? this.#start(model)
    await withDeadline({ what: `${model} to answer`, ms: this.#timeoutMs * 2, signal }, () => verdict)
  }

  #start(model: string): Promise<void> {
    const verdict = this.#call(model)
    this.#verdicts.set(model, verdict)
    verdict.catch(() => {
      setTimeout(() => this.#verdicts.delete(model), BAD_VERDICT_MS).unref()
    })
    return verdict
  }

  async #call(model: string): Promise<void> {
    const what = `${model} to answer a first short call`
    try {
      await withDeadline({ what, ms: this.#timeoutMs, code: 'model_timeout' }, async (signal) => {
        for await (const _ of this.#run({ ...PROOF, model, signal })) {
          // Every end except an error is proof.
        }
      })
    } catch (error) {
      // A thinking model uses up its few tokens before the first word. It accepted the call and the tool, which is enough.
      if (!isAppError(error, 'model_empty_answer')) throw error
    }
  }
}
