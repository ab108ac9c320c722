import { z } from 'zod'
import { mentionsSecret } from '../catalog/literal-secrets.ts'
import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import { KeyedLock } from '../lib/waiting/keyed-lock.ts'
import type { Router, UsageExample } from '../routing/port.ts'
import type { Json, KeyValueStore } from '../storage/key-value-store.ts'

const example = z.object({
  request: z.string(),
  server: z.string(),
  tool: z.string(),
  at: z.number(),
  owner: z.string().optional(),
  session: z.string().optional()
})
const SPACE = 'routing-usage'
const KEY = 'examples'
const CLEARED = 'cleared'
const MAX_STORED = 2000
const SAVE_MS = 2000
const MAX_TRIES = 10

/** Keeps in the local store what the router has learnt from use. It goes nowhere else. */
export async function openStoredUsage(keyValues: KeyValueStore, router: Router, logger: Logger) {
  /** The stored examples as this process last saw them. */
  let seen = await keyValues.get(SPACE, KEY)
  for (const stored of parseExamples(seen)) router.learn(stored)
  let cleared = await clearedAt(keyValues)
  let fresh: UsageExample[] = []
  let timer: NodeJS.Timeout | undefined
  const learnAgain = (examples: readonly UsageExample[]) => {
    router.forgetUsage()
    for (const learnt of examples) router.learn(learnt)
  }
  /** Forgetting and saving take turns: a save must not write back what is being forgotten. */
  const lock = new KeyedLock()

  /** Merges into the stored data: several gateways may share the store, and any of them may have cleared it. */
  const save = () => lock.run(KEY, mergeIntoStore)
  async function mergeIntoStore(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const latest = await clearedAt(keyValues)
    if (latest > cleared) {
      cleared = latest
      fresh = fresh.filter(({ at }) => at > latest)
      learnAgain(fresh)
    }
    const added = fresh
    fresh = []
    const { stored, rows } = await addExamples(keyValues, added).catch((error) => {
      fresh = [...added, ...fresh]
      throw error
    })
    // Other instances have learnt or forgotten something.
    if (JSON.stringify(stored) !== JSON.stringify(seen)) learnAgain([...parseExamples(stored), ...added, ...fresh])
    seen = rows
  }
  const report = (error: unknown) => logger.warn(`Could not store what was learnt from use: ${messageOf(error)}`)
  return {
    learn(request: string, server: string, tool: string, owner: string, session?: string): void {
      // Requests are stored as plain text, and shown by `servers usage`.
      if (mentionsSecret(request)) return
      const learnt = { request, server, tool, at: Date.now(), owner, session }
      router.learn(learnt)
      fresh = withinLimit([...fresh, learnt])
      timer ??= setTimeout(() => void save().catch(report), SAVE_MS).unref()
    },
    /** Forgets everything, here and in the store. Another running process forgets when it next saves or starts. */
    async forget(): Promise<void> {
      clearTimeout(timer)
      timer = undefined
      fresh = []
      cleared = Date.now()
      router.forgetUsage()
      await keyValues.set(SPACE, CLEARED, cleared)
      await keyValues.remove(SPACE, KEY)
    },
    /** Forgets what was learnt in a chat session. Another running process forgets it when it next looks. */
    async forgetSession(session: string): Promise<void> {
      fresh = fresh.filter((learnt) => learnt.session !== session)
      const known = router.usage()
      const kept = known.filter((learnt) => learnt.session !== session)
      if (kept.length < known.length) learnAgain(kept)
      await lock.run(KEY, () => forgetStoredSession(keyValues, session))
    },
    /** Uses what other instances have learnt meanwhile. */
    refresh: () => save().catch(report),
    async flush(): Promise<void> {
      if (timer) await save().catch(report)
    }
  }
}

/** Adds to what is stored, which others may change at the same moment. `stored` is what was there before, `rows` what is there now. */
async function addExamples(
  keyValues: KeyValueStore,
  added: readonly UsageExample[]
): Promise<{ stored: Json; rows: Json }> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = await keyValues.get(SPACE, KEY)
    if (added.length === 0) return { stored, rows: stored }
    const rows = withinLimit([...parseExamples(stored), ...added]).map(toRow)
    const isSaved = await (stored === null
      ? keyValues.add(SPACE, KEY, rows)
      : keyValues.replace(SPACE, KEY, stored, rows))
    if (isSaved) return { stored, rows }
  }
  throw new Error('other instances write at the same time')
}

/** Drops the oldest examples of those who have most, so that nobody pushes out what others have taught. */
function withinLimit(examples: UsageExample[]): UsageExample[] {
  if (examples.length <= MAX_STORED) return examples
  const owners = [...Map.groupBy(examples, ({ owner = '' }) => owner).values()]
  for (let over = examples.length - MAX_STORED; over > 0; over -= 1)
    owners.reduce((most, own) => (own.length > most.length ? own : most)).shift()
  const kept = new Set(owners.flat())
  return examples.filter((each) => kept.has(each))
}

/** Removes what was learnt in a chat session from the store. */
export async function forgetStoredSession(keyValues: KeyValueStore, session: string): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = await keyValues.get(SPACE, KEY)
    const examples = parseExamples(stored)
    const kept = examples.filter((learnt) => learnt.session !== session)
    if (kept.length === examples.length || (await keyValues.replace(SPACE, KEY, stored, kept.map(toRow)))) return
  }
}

function toRow({ request, server, tool, at, owner, session }: UsageExample) {
  return { request, server, tool, at, ...(owner && { owner }), ...(session && { session }) }
}

async function clearedAt(keyValues: KeyValueStore): Promise<number> {
  const at = await keyValues.get(SPACE, CLEARED)
  return typeof at === 'number' ? at : 0
}

function parseExamples(stored: Json): UsageExample[] {
  return Array.isArray(stored) ? stored.flatMap((item) => example.safeParse(item).data ?? []) : []
}
