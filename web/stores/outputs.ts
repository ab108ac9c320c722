import { defineStore } from 'pinia'
import { markRaw, shallowReactive } from 'vue'
import { AnsiLines } from '../text/console/ansi-lines.ts'

/** Live output of a call. `lines` grows in place; `version` tells the view that it did. */
export interface LiveOutput {
  lines: AnsiLines
  version: number
  /** How many characters the call has written up to here. */
  end: number
  /** Whether the beginning is missing. */
  isCut: boolean
}

interface Chunk {
  stream: 'stdout' | 'stderr'
  text: string
}

const MAX_CALLS = 40

/** Live output of running calls. It is not stored; the stored result contains its head and tail. */
export const useOutputs = defineStore('outputs', () => {
  const outputs = shallowReactive(new Map<string, LiveOutput>())
  let changed = new Set<string>()
  let frame = 0

  /**
   * Adds what the call has written from its character `at` on. The server repeats the end of the output to everyone when a client
   * connects (`isEnd`): it fills the gap of a page that was away, and changes nothing on the others.
   */
  function take(callId: string, at: number, chunks: Chunk[], isEnd = false): void {
    const known = outputs.get(callId)
    const isGap = at > (known?.end ?? 0)
    if (isGap && !isEnd) return
    const output = at === 0 || isGap || !known ? start(callId, at) : known
    let from = at
    for (const { stream, text } of chunks) {
      const news = text.slice(Math.max(0, output.end - from))
      from += text.length
      if (news === '') continue
      output.lines.push(news, stream === 'stderr' ? 'console-stderr' : '')
      output.end = from
    }
    changed.add(callId)
    // Chunks arrive faster than the screen can show them.
    if (frame === 0) frame = requestAnimationFrame(flush)
  }

  function start(callId: string, at: number): LiveOutput {
    const output = shallowReactive({ lines: markRaw(new AnsiLines()), version: 0, end: at, isCut: at > 0 })
    outputs.delete(callId)
    outputs.set(callId, output)
    for (const oldest of outputs.keys()) {
      if (outputs.size <= MAX_CALLS) break
      outputs.delete(oldest)
    }
    return output
  }

  function flush(): void {
    frame = 0
    for (const callId of changed) {
      const output = outputs.get(callId)
      if (output) output.version += 1
    }
    changed = new Set()
  }
  return { outputs, take, clear: () => outputs.clear() }
})
