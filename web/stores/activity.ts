import { defineStore } from 'pinia'
import { computed, ref } from 'vue'
import type { AuditEntry, AuditOutcome } from '../../contract/audit.ts'
import { api, messageOf } from '../api.ts'

export interface ActivityFilter {
  server: string
  tool: string
  outcome: AuditOutcome | ''
  /** A part of anything that a row shows. */
  text: string
  /** Days as the person's calendar has them, both included: `2026-01-31`. */
  from: string
  to: string
}

const EMPTY: ActivityFilter = { server: '', tool: '', outcome: '', text: '', from: '', to: '' }

const PAGE = 50
/** Maximum number of rows in one reply. */
const MAX_LIMIT = 500

/** The audit log, newest first. Older rows stay while the newest are polled. */
export const useActivity = defineStore('activity', () => {
  const entries = ref<AuditEntry[]>([])
  const next = ref<string | null>(null)
  const problem = ref('')
  const isLoading = ref(false)
  const isLoaded = ref(false)
  const filter = ref<ActivityFilter>({ ...EMPTY })
  const isFiltered = computed(() => Object.values(filter.value).some((value) => value.trim() !== ''))
  let asked = 0

  /** Reloads the shown rows, up to the size of one reply; rows below stay as they are. */
  async function loadNewest(): Promise<void> {
    const limit = isLoaded.value ? Math.max(PAGE, Math.ceil(entries.value.length / PAGE) * PAGE) : PAGE
    await ask({ limit: String(Math.min(limit, MAX_LIMIT)) }, (page, oldest) => {
      const below = isLoaded.value && oldest !== null ? entries.value.filter(({ id }) => id < oldest) : []
      // If no row overlaps, rows in between might be missing.
      if (below.length === 0 || below.length === entries.value.length) return { all: page, next: oldest }
      const all = [...page, ...below]
      return all.length > limit
        ? { all: all.slice(0, limit), next: all[limit - 1]?.id ?? null }
        : { all, next: next.value }
    })
  }
  /** Skipped while an older page is loading. */
  async function refresh(): Promise<void> {
    if (!isLoading.value) await loadNewest()
  }
  async function older(): Promise<void> {
    const before = next.value
    if (before === null || isLoading.value) return
    isLoading.value = true
    await ask({ before }, (page, oldest) => ({ all: [...entries.value, ...page], next: oldest }))
    isLoading.value = false
  }
  async function restart(): Promise<void> {
    isLoaded.value = false
    await loadNewest()
  }
  /** Only the reply to the last request counts. */
  async function ask(
    part: { limit?: string; before?: string },
    take: (page: AuditEntry[], next: string | null) => { all: AuditEntry[]; next: string | null }
  ): Promise<void> {
    const mine = ++asked
    try {
      const reply = await api.audit({ ...queryOf(filter.value), ...part })
      if (mine !== asked) return
      const taken = take(reply.entries, reply.next)
      entries.value = taken.all
      next.value = taken.next
      problem.value = reply.problem ?? ''
      isLoaded.value = true
    } catch (error) {
      if (mine === asked) problem.value = messageOf(error)
    }
  }
  function clearFilter(): void {
    filter.value = { ...EMPTY }
  }
  const state = { entries, next, problem, isLoading, isLoaded, filter, isFiltered }
  return { ...state, refresh, older, restart, clearFilter }
})

/** The server knows times, not calendars. */
function queryOf({ from, to, ...others }: ActivityFilter): Record<string, string> {
  const end = startOf(to)
  end?.setDate(end.getDate() + 1)
  const trimmed = Object.fromEntries(Object.entries(others).map(([name, value]) => [name, value.trim()]))
  return { ...trimmed, from: startOf(from)?.toISOString() ?? '', to: end?.toISOString() ?? '' }
}

function startOf(day: string): Date | undefined {
  const date = new Date(`${day}T00:00`)
  return Number.isNaN(date.getTime()) ? undefined : date
}
