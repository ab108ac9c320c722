/** Counts what a model reads and writes for a task, and what the task takes. */
import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'

/** gpt-tokenizer's encoding of the newer OpenAI models. The tokenizers of other vendors differ; the shares hardly do. */
export const TOKENIZER = 'o200k_base (gpt-tokenizer 4.0.0)'

/**
 * A stated model, because the measured ones answer at once. It was fixed before measuring, and is a fast one: the slower the model, the
 * better for the way with fewer tokens and steps.
 */
export const MODEL = { stepMs: 1000, readsTokensPerS: 10_000, writesTokensPerS: 100 }

export interface Cost {
  in: number
  out: number
  /** Answers of the model that call tools. Calls that were made together are one. */
  steps: number
  ms: number
  interruptions: number
}

export type Result = Record<string, unknown>

export class Meter {
  #steps = 0
  #open = 0
  #ms = 0
  interruptions = 0
  /** Counted at the end, outside of the time that is measured. */
  readonly #read: string[] = []
  readonly #written: string[] = []

  /** One call of the model: its arguments and its result, each once. The lists of tools are not counted. */
  async count(args: unknown, call: () => Promise<Result>): Promise<Result> {
    if (this.#open++ === 0) this.#steps++
    try {
      const result = await call()
      this.#written.push(JSON.stringify(args))
      this.#read.push(JSON.stringify(result.content ?? result.structuredContent ?? ''))
      return result
    } finally {
      this.#open--
    }
  }

  async time<T>(job: () => Promise<T>): Promise<T> {
    const began = performance.now()
    const value = await job()
    this.#ms += performance.now() - began
    return value
  }

  /** Waits as long as the stated model needs for a step. This time is not measured: `withModelMs` adds it. */
  async think(): Promise<void> {
    await delay(MODEL.stepMs)
    this.#ms -= MODEL.stepMs
  }

  cost(): Cost {
    const [read, written] = [this.#read, this.#written].map((texts) =>
      texts.reduce((sum, each) => sum + tokensOf(each), 0)
    )
    return {
      in: read ?? 0,
      out: written ?? 0,
      steps: this.#steps,
      ms: Math.round(this.#ms),
      interruptions: this.interruptions
    }
  }
}

/** With the time that the stated model needs. */
export function withModelMs(cost: Cost): number {
  const reading = (cost.in / MODEL.readsTokensPerS) * 1000
  const writing = (cost.out / MODEL.writesTokensPerS) * 1000
  return Math.round(cost.ms + cost.steps * MODEL.stepMs + reading + writing)
}

const require = createRequire(import.meta.url)
let count: ((text: string, options: object) => number) | undefined

function tokensOf(text: string): number {
  // Loaded when it is needed: the encoding has two megabytes.
  count ??= require('gpt-tokenizer/encoding/o200k_base').countTokens as typeof count
  return count?.(text, { disallowedSpecial: new Set() }) ?? 0
}
