import type { AppError } from '../../lib/errors.ts'

const MAX_REMEMBERED = 10_000
/** Local servers answer 500 if their model has no eyes. */
const NAMES_FILES = /image|vision|multi-?modal|mmproj|\bpdf\b|document/i

/**
 * Files that a vendor did not accept: broken ones, or any if the model reads only text. Without this, one such file would make the
 * vendor refuse every later request of its conversation. It is only a cache: a file is tried once more after a restart.
 */
export class RefusedFiles {
  readonly #keys = new Set<string>()

  add(modelId: string, ids: readonly string[]): void {
    for (const id of ids) this.#keys.add(`${modelId} ${id}`)
    for (const oldest of this.#keys) {
      if (this.#keys.size <= MAX_REMEMBERED) return
      this.#keys.delete(oldest)
    }
  }

  has(modelId: string, id: string): boolean {
    return this.#keys.has(`${modelId} ${id}`)
  }
}

/** Whether the request may succeed without its files. */
export function saysFilesRefused(error: AppError): boolean {
  const { code, message } = error
  return code === 'model_request_rejected' || (code === 'model_overloaded' && NAMES_FILES.test(message))
}

export function withoutFiles({ message }: AppError): string {
  return `${message} The model continues without the images and PDFs, and was told so.`
}
