import { ref } from 'vue'
import { messageOf } from '../api.ts'

/** The state of a request: whether it is under way, and why the last one failed. `onError` gets the error itself. */
export function useAttempt(onError: (error: unknown) => void = () => {}) {
  const problem = ref('')
  const isBusy = ref(false)
  /** Returns false if it failed. */
  async function attempt(work: () => Promise<void>): Promise<boolean> {
    isBusy.value = true
    problem.value = ''
    try {
      await work()
      return true
    } catch (error) {
      problem.value = messageOf(error)
      onError(error)
      return false
    } finally {
      isBusy.value = false
    }
  }
  return { problem, isBusy, attempt }
}
