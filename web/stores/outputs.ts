import { defineStore } from 'pinia'
import { markRaw, shallowReactive } from 'vue'
import { AnsiLines } from '../text/console/ansi-lines.ts'

/** Live output of a call. `lines` grows in place; `version` tells the view that it did. */
export interface LiveOutput {
  lines: AnsiLines
  version: number
}

const MAX_CALLS = 40

/** Live output of running calls. It is not stored; the stored result contains its head and tail. */
export const useOutputs = defineStore('outputs', () => {
  const outputs = shallowReactive(new Map<string, LiveOutput>())
  let changed = new Set<string>()
  let frame = 0

  /** Chunks arrive faster than the screen can show them, so update once per frame. */
  function push(callId: string, stream: 'stdout' | 'stderr', text: string): void {
    const output = outputs.get(callId) ?? start(callId)
    output.lines.push(text, stream === 'stderr' ? 'console-stderr' : '')
    changed.add(callId)
    if (frame === 0) frame = requestAnimationFrame(flush)
  }

  function start(callId: string): LiveOutput {
    const output = shallowReactive({ lines: markRaw(new AnsiLines()), version: 0 })
    outputs.set(callId, output)
    for (const oldest of outputs.keys()) {
      if (outputs.size <= MAX_CALLS) break
      outputs.delete(oldest)
    }
    return output
  }

  /** Replaces what was received of a call that began before this page was connected. */
  function restart(callId: string, chunks: { stream: 'stdout' | 'stderr'; text: string }[]): void {
    outputs.delete(callId)
    for (const { stream, text } of chunks) push(callId, stream, text)
  }

  function flush(): void {
    frame = 0
    for (const callId of changed) {
      const output = outputs.get(callId)
      if (output) output.version += 1
    }
    changed = new Set()
  }
  return { outputs, push, restart, clear: () => outputs.clear() }
})
