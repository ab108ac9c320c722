import { defineStore } from 'pinia'
import { ref } from 'vue'
import type { AuditEntry, AuditOutcome } from '../../contract/audit.ts'
import { api } from '../api.ts'

export interface ActivityFilter {
  server: string
  tool: string
  outcome: AuditOutcome | ''
}

/** The audit trail, newest first. What was read further back stays while the newest is asked for anew. */
export const useActivity = defineStore('activity', () => {
  const entries = ref<AuditEntry[]>([])
  const next = ref<string | null>(null)
  const problem = ref('')
  const isLoading = ref(false)
  const isLoaded = ref(false)
  const filter = ref<ActivityFilter>({ server: '', tool: '', outcome: '' })
  let asked = 0

  /** Older pages that were read are kept only when the new first page reaches down to them: else there would be a gap. */
  async function refresh(): Promise<void> {
    await ask(undefined, (page, oldest) => {
      const known = new Map(entries.value.map((entry) => [entry.id, entry]))
      if (!isLoaded.value || !page.some(({ id }) => known.has(id))) return { all: page, next: oldest }
      for (const entry of page) known.set(entry.id, entry)
      const all = [...known.values()].sort((a, b) => (a.id < b.id ? 1 : -1))
      return { all, next: next.value }
    })
  }
  async function older(): Promise<void> {
    const before = next.value
    if (before === null || isLoading.value) return
    isLoading.value = true
    await ask(before, (page, oldest) => ({ all: [...entries.value, ...page], next: oldest }))
    isLoading.value = false
  }
  async function restart(): Promise<void> {
    isLoaded.value = false
    await refresh()
  }
  /** Of several questions under way only the last one's answer counts. */
  async function ask(
    before: string | undefined,
    take: (page: AuditEntry[], next: string | null) => { all: AuditEntry[]; next: string | null }
  ): Promise<void> {
    const mine = ++asked
    try {
      const reply = await api.audit({ ...filter.value, before })
      if (mine !== asked) return
      const taken = take(reply.entries, reply.next)
      entries.value = taken.all
      next.value = taken.next
      problem.value = reply.problem ?? ''
      isLoaded.value = true
    } catch (error) {
      if (mine === asked) problem.value = error instanceof Error ? error.message : String(error)
    }
  }
  return { entries, next, problem, isLoading, isLoaded, filter, refresh, older, restart }
})
