/** Decodes and compares two large files outside the page's thread. Answers null if one of them is not text. */
import { decodeText } from '../files/text-file.ts'
import { type LargeDiff, largeDiff } from './large-diff.ts'

addEventListener('message', ({ data }: MessageEvent<{ before: Uint8Array; after: Uint8Array }>) => {
  const [before, after] = [decodeText(data.before), decodeText(data.after)]
  const answer: LargeDiff | null = before && after ? largeDiff(before.text, after.text) : null
  postMessage(answer)
})
