/**
 * A run of a program over a real store, in this process or in one that kills itself. Three reads, two of them at once, two writes that
 * are approved, and one that waits. What was sent is in a file, which no crash takes back.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { silentLogger } from '../../lib/logger.ts'
import { ApprovalInbox } from '../../policy/approval-inbox.ts'
import { openEmbeddedStore } from '../../storage/embedded/open-embedded-store.ts'
import type { EventLog } from '../../storage/event-log.ts'
import { CodeRuns } from '../code-runs.ts'
import { ApprovalPending, type CallOutcome, type ProgramCalls } from '../program-call.ts'
import { localRealm } from '../realms/local-realm.fixture.ts'

export const CODE = `const ids = await tools.crm.list()
const [a, b] = await Promise.all(ids.map((id) => tools.crm.read({ id })))
const send = (to) => tools.mail.send({ to }).then(() => 'sent', (error) => error.code)
const said = [await send(a), await send(b)]
console.log('two')
said.push(await send('chief' + Math.floor(Math.random() * 1e9)))
;({ a, b, said })`
const LIMITS = { MAX_SESSION_LOG_MB: 64, MAX_OWNER_LOG_MB: 1024, MAX_LOG_MB: 10_240 }
const QUICK = { lingerMs: 3, pollMs: 2, watchMs: 10, leaseMs: 100, answerMs: 60_000 }
export const ASKER = { owner: 'local', door: 'stdio' } as const

/** The effects of the writes. */
export function sentIn(dir: string): string[] {
  const file = join(dir, 'sent')
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
}

function callsIn(dir: string): ProgramCalls {
  return {
    async run({ server, tool, args }, hooks): Promise<CallOutcome> {
      if (tool === 'list') return { ok: true, value: ['x', 'y'] }
      if (tool === 'read') return { ok: true, value: `${args.id}@example.test` }
      const hash = JSON.stringify([args, hooks.interruptions])
      const decision = hooks.decided(hash)
      const warning = hooks.interruptions > 0 ? { warning: 'It may have been sent.' } : {}
      if (!decision) throw new ApprovalPending({ server, tool, args, hash, asker: { door: 'stdio' }, ...warning })
      if (!decision.approved) return { ok: false, code: 'outcome_unknown', message: 'not repeated' }
      await hooks.beforeSending()
      appendFileSync(join(dir, 'sent'), `${args.to}\n`)
      return { ok: true, value: null }
    }
  }
}

/** `wrap` may kill the process at an event. */
export async function openRuns(dir: string, wrap = (events: EventLog) => events) {
  const store = await openEmbeddedStore({ dataDir: join(dir, 'data'), deploymentId: undefined, logger: silentLogger })
  const inbox = new ApprovalInbox(store.keyValues)
  const runs = new CodeRuns({
    ...{ events: wrap(store.events), keyValues: store.keyValues, inbox, logger: silentLogger, home: 'test' },
    ...{ openRealm: async () => localRealm(), limits: LIMITS, times: QUICK }
  })
  const calls = callsIn(dir)
  runs.follow(() => calls)
  return { store, inbox, runs, calls }
}
