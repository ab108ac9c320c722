import { onUnmounted, type Ref, ref } from 'vue'

interface Clock {
  now: Ref<number>
  users: number
  timer: ReturnType<typeof setInterval>
}
const clocks = new Map<number, Clock>()

function startClock(everyMs: number): Clock {
  const now = ref(Date.now())
  const timer = setInterval(() => {
    now.value = Date.now()
  }, everyMs)
  const clock = { now, users: 0, timer }
  clocks.set(everyMs, clock)
  return clock
}

/** The current time, updated every `everyMs`. Components with the same interval share a clock, so they change together. */
export function useNow(everyMs = 1000): Readonly<Ref<number>> {
  const clock = clocks.get(everyMs) ?? startClock(everyMs)
  clock.users += 1
  clock.now.value = Date.now()
  onUnmounted(() => {
    clock.users -= 1
    if (clock.users > 0) return
    clearInterval(clock.timer)
    clocks.delete(everyMs)
  })
  return clock.now
}
