import type { DiffRow } from '../diff/diff-row.ts'
import workerUrl from '../diff/diff-worker.ts?worker&url'
import type { LargeDiff } from '../diff/large-diff.ts'
import { lineDiff, newFileRows } from '../diff/line-diff.ts'
import { decodeText } from '../files/text-file.ts'

/** Both versions of a file together; larger ones are compared in a worker. */
const MAX_IN_PAGE_BYTES = 400_000
const WORKER_MS = 30_000

export interface Comparison {
  rows: DiffRow[]
  added: number
  removed: number
  /** For the colours of the syntax; missing for large files. */
  before?: string | null
  after?: string
}

/** Compares two versions of a file, line by line; null if one of them is not text. A side that does not exist is empty. */
export async function compareSides(
  before: Uint8Array<ArrayBuffer> | null,
  after: Uint8Array<ArrayBuffer> | null
): Promise<Comparison | null> {
  const [old, now] = [before ?? new Uint8Array(), after ?? new Uint8Array()]
  if (old.length + now.length > MAX_IN_PAGE_BYTES) return inWorker(old, now)
  const [oldText, newText] = [decodeText(old), decodeText(now)]
  if (!oldText || !newText) return null
  const rows = before === null ? newFileRows(newText.text) : await lineDiff(oldText.text, newText.text)
  return { rows, ...tallyOf(rows), before: oldText.text, after: newText.text }
}

function tallyOf(rows: readonly DiffRow[]): { added: number; removed: number } {
  const countOf = (wanted: DiffRow['kind']) => rows.filter(({ kind }) => kind === wanted).length
  return { added: countOf('added'), removed: countOf('removed') }
}

function inWorker(before: Uint8Array, after: Uint8Array): Promise<LargeDiff | null> {
  const worker = new Worker(workerUrl)
  let timer: ReturnType<typeof setTimeout>
  return new Promise<LargeDiff | null>((resolve, reject) => {
    const fail = () => reject(new Error('These versions could not be compared. Download them instead.'))
    timer = setTimeout(fail, WORKER_MS)
    worker.onmessage = ({ data }: MessageEvent<LargeDiff | null>) => resolve(data)
    worker.onerror = fail
    worker.postMessage({ before, after })
  }).finally(() => {
    clearTimeout(timer)
    worker.terminate()
  })
}
