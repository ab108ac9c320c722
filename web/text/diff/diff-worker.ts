/** Decodes and compares two large files outside the page's thread. Answers null if they are not text. */
import { largeDiff, type NotedDiff } from './large-diff.ts'
import { readableSides } from './readable-text.ts'

addEventListener('message', ({ data }: MessageEvent<{ before: Uint8Array; after: Uint8Array }>) => {
  const sides = readableSides(data.before, data.after)
  const answer: NotedDiff | null = sides && { ...largeDiff(sides.before, sides.text), note: sides.note }
  postMessage(answer)
})
