import type { DiffRow } from '../diff/diff-row.ts'
import workerUrl from '../diff/diff-worker.ts?worker&url'
import type { NotedDiff } from '../diff/large-diff.ts'
import { lineDiff, newFileRows } from '../diff/line-diff.ts'
import { readableSides } from '../diff/readable-text.ts'

/** The limit for both versions of a file together; larger ones are compared in a worker. */
const MAX_IN_PAGE_BYTES = 400_000
const WORKER_MS = 30_000

export interface Comparison {
  rows: DiffRow[]
  added: number
  removed: number
  /** A warning about the encoding; empty if it is the usual one. */
  note: string
  /** For the colours of the syntax; missing for large files. */
  before?: string | null
  after?: string
}

/** Compares two versions of a file, line by line; null if they are not text. A side that does not exist is empty. */
export async function compareSides(
  before: Uint8Array<ArrayBuffer> | null,
  after: Uint8Array<ArrayBuffer> | null
): Promise<Comparison | null> {
  const [old, now] = [before ?? new Uint8Array(), after ?? new Uint8Array()]
  if (old.length + now.length > MAX_IN_PAGE_BYTES) return inWorker(old, now)
  const sides = readableSides(old, now)
  if (!sides) return null
  const { before: oldText, text, note } = sides
  const rows = oldText === '' ? newFileRows(text) : await lineDiff(oldText, text)
  return { rows, ...tallyOf(rows), note, before: oldText, after: text }
}

function tallyOf(rows: readonly DiffRow[]): { added: number; removed: number } {
  const countOf = (wanted: DiffRow['kind']) => rows.filter(({ kind }) => kind === wanted).length
  return { added: countOf('added'), removed: countOf('removed') }
}

function inWorker(before: Uint8Array, after: Uint8Array): Promise<NotedDiff | null> {
  const worker = new Worker(workerUrl)
  let timer: ReturnType<typeof setTimeout>
  return new Promise<NotedDiff | null>((resolve, reject) => {
    const fail = () => reject(new Error('These versions could not be compared. Download them instead.'))
    timer = setTimeout(fail, WORKER_MS)
    worker.onmessage = ({ data }: MessageEvent<NotedDiff | null>) => resolve(data)
    worker.onerror = fail
    worker.postMessage({ before, after })
  }).finally(() => {
    clearTimeout(timer)
    worker.terminate()
  })
}
