import { defineStore } from 'pinia'
import { ref } from 'vue'

/** The streamed answer, and what the model thinks before it. Both end when the stored answer arrives. */
export const useStream = defineStore('stream', () => {
  const text = ref('')
  const reasoning = ref('')
  const turnId = ref<string | null>(null)
  let waiting = ''
  let thought = ''
  let frame = 0

  function begin(turn: string): void {
    end()
    turnId.value = turn
  }

  /** The answer from its beginning. */
  function restart(turn: string, whole: string): void {
    of(turn)
    text.value = waiting = ''
    push(turn, whole)
  }

  function push(turn: string, piece: string): void {
    of(turn)
    waiting += piece
    frame ||= requestAnimationFrame(flush)
  }

  /** `at`: the position of the piece in the whole thought. */
  function think(turn: string, piece: string, at: number): void {
    of(turn)
    thought = thought.slice(0, at) + piece
    frame ||= requestAnimationFrame(flush)
  }

  function of(turn: string): void {
    if (turnId.value !== turn) begin(turn)
  }

  function flush(): void {
    frame = 0
    text.value += waiting
    waiting = ''
    reasoning.value = thought
  }

  function end(): void {
    cancelAnimationFrame(frame)
    frame = 0
    waiting = thought = ''
    text.value = reasoning.value = ''
  }
  return { text, reasoning, turnId, begin, restart, push, think, end }
})
