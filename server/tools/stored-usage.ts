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
  for (const stored of await readExamples(keyValues)) router.learn(stored)
  let cleared = await clearedAt(keyValues)
  let fresh: UsageExample[] = []
  let timer: NodeJS.Timeout | undefined
  /** A save must not write back what is being forgotten. */
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
      router.forgetUsage()
      for (const kept of fresh) router.learn(kept)
    }
    const added = fresh
    fresh = []
    const examples = [...(await readExamples(keyValues)), ...added].slice(-MAX_STORED)
    await keyValues.set(SPACE, KEY, examples.map(toRow))
  }
  const report = (error: unknown) => logger.warn(`Could not store what was learnt from use: ${messageOf(error)}`)
  return {
    learn(request: string, server: string, tool: string, owner: string, session?: string): void {
      // Requests are stored as plain text, and shown by `servers usage`.
      if (mentionsSecret(request)) return
      const learnt = { request, server, tool, at: Date.now(), owner, session }
      router.learn(learnt)
      fresh = [...fresh, learnt].slice(-MAX_STORED)
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
    /** Forgets what was learnt in a chat session. Another running process goes on to use it until its next start, but does not store it again. */
    async forgetSession(session: string): Promise<void> {
      fresh = fresh.filter((learnt) => learnt.session !== session)
      const known = router.usage()
      const kept = known.filter((learnt) => learnt.session !== session)
      if (kept.length < known.length) {
        router.forgetUsage()
        for (const learnt of kept) router.learn(learnt)
      }
      await lock.run(KEY, () => forgetStoredSession(keyValues, session))
    },
    async flush(): Promise<void> {
      if (timer) await save().catch(report)
    }
  }
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

async function readExamples(keyValues: KeyValueStore): Promise<UsageExample[]> {
  return parseExamples(await keyValues.get(SPACE, KEY))
}

function parseExamples(stored: Json): UsageExample[] {
  return Array.isArray(stored) ? stored.flatMap((item) => example.safeParse(item).data ?? []) : []
}
