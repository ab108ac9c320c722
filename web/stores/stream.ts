import { defineStore } from 'pinia'
import { ref } from 'vue'

/** The streamed answer. It ends when the stored answer arrives. */
export const useStream = defineStore('stream', () => {
  const text = ref('')
  const turnId = ref<string | null>(null)
  let waiting = ''
  let frame = 0

  function begin(turn: string): void {
    end()
    turnId.value = turn
  }

  function push(turn: string, piece: string): void {
    if (turnId.value !== turn) {
      end()
      turnId.value = turn
    }
    waiting += piece
    if (frame === 0) frame = requestAnimationFrame(flush)
  }

  function flush(): void {
    frame = 0
    text.value += waiting
    waiting = ''
  }

  function end(): void {
    cancelAnimationFrame(frame)
    frame = 0
    waiting = ''
    text.value = ''
  }
  return { text, turnId, begin, push, end }
})
