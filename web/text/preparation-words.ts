import type { Progress } from '../../contract/live.ts'

/** Why calls in the sandbox don't work yet; null if they do. */
export interface Preparation {
  text: string
  /** A separate part, because it changes too often to be announced. */
  step: string
}

export function preparationWords(progress: Progress | null): Preparation | null {
  if (!progress || progress.stage === 'ready') return null
  if (progress.stage !== 'image') return { text: progress.message, step: '' }
  const [, step, steps] = /^Step (\d+)\/(\d+)/.exec(progress.message) ?? []
  return {
    text: 'The sandbox image is being built',
    step: step ? `(step ${step} of ${steps}).` : `(${progress.message.replace(/[.…]+$/, '')}).`
  }
}
