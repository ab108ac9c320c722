import { messageOf } from '../lib/errors.ts'
import type { Logger } from '../lib/logger.ts'
import type { KeyValueStore } from '../storage/key-value-store.ts'
import type { Router, UsageExample } from './routing/port.ts'

const SPACE = 'routing-usage'
const KEY = 'examples'
const MAX_STORED = 2000
const SAVE_MS = 2000

/** Keeps what the router has learnt from use, in this machine's store and nowhere else. */
export async function openStoredUsage(facts: KeyValueStore, router: Router, logger: Logger) {
  const stored = await facts.get(SPACE, KEY)
  for (const item of Array.isArray(stored) ? stored : []) {
    const example = readExample(item)
    if (example) router.learn(example)
  }
  let timer: NodeJS.Timeout | undefined
  const save = async () => {
    clearTimeout(timer)
    timer = undefined
    const examples = router.usage().slice(-MAX_STORED)
    await facts.set(
      SPACE,
      KEY,
      examples.map(({ request, server, tool, at }) => ({ request, server, tool, at }))
    )
  }
  const report = (error: unknown) => logger.warn(`What was learnt from use could not be stored: ${messageOf(error)}`)
  return {
    learn(request: string, server: string, tool: string): void {
      router.learn({ request, server, tool, at: Date.now() })
      timer ??= setTimeout(() => void save().catch(report), SAVE_MS).unref()
    },
    async flush(): Promise<void> {
      if (timer) await save().catch(report)
    }
  }
}

function readExample(value: unknown): UsageExample | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { request, server, tool, at }: { request?: unknown; server?: unknown; tool?: unknown; at?: unknown } = value
  const isWhole = typeof request === 'string' && typeof server === 'string' && typeof tool === 'string'
  return isWhole && typeof at === 'number' ? { request, server, tool, at } : undefined
}
