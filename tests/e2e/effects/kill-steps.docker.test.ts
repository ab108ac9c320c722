/**
 * The real server is killed with -9 while it previews, keeps, reviews, rewinds and undoes: at a random moment of each step, from a seed. Afterwards the change is in
 * the workspace once or not at all, the card is there or answered, and no fork is left. `KILL_ROUNDS` tries more moments than the few here.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, it } from 'vitest'
import type { RevertPlanReply, VersionsReply } from '../../../contract/effects/effect-replies.ts'
import type { Snapshot } from '../../../contract/live.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import { openEngine } from '../../../server/app/engine/open-engine.ts'
import { loadSettings } from '../../../server/config/load-settings.ts'
import { silentLogger } from '../../../server/lib/logger.ts'
import { seededRandom } from '../../chaos/random.ts'
import type { Client } from '../../support/client.ts'
import { eventually } from '../../support/eventually.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'

afterAll(stopServers)

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 1)
const SEED = Number(process.env.KILL_SEED ?? 1)
/** About as long as each step takes. */
const STEP_MS = 400

interface Visitor {
  id: string
  token: string | undefined
  client: Client
}

async function transcriptOf({ client }: Visitor): Promise<Transcript> {
  const from = client.seen.length
  await client.ask('session:snapshot')
  return ((await client.snapshot(from)) as Snapshot).transcript
}

const get = (server: Served, path: string, { id, token }: Visitor) =>
  fetch(`${server.url}/api/sessions/${id}/${path}`, { headers: { 'x-session-token': String(token) } })

const contentOf = async (server: Served, visitor: Visitor) => {
  const reply = await get(server, 'file?path=runs.txt', visitor)
  return reply.ok ? reply.text() : ''
}

async function enter(server: Served, known?: Visitor): Promise<Visitor> {
  const id = known?.id ?? `kill-${randomUUID()}`
  const client = server.connect(id, { token: known?.token })
  const { token = known?.token } = await client.ready()
  await client.snapshot()
  return { id, token, client }
}

async function planOf(server: Served, visitor: Visitor, changeId: string): Promise<RevertPlanReply> {
  const reply = await get(server, `changes/${encodeURIComponent(changeId)}/revert?scope=one`, visitor)
  return (await reply.json()) as RevertPlanReply
}

/** Nobody works on it any more: the turn is over, and no review opens or is applied. */
async function quiet(visitor: Visitor): Promise<Transcript> {
  let last: Transcript | undefined
  await eventually('the session is quiet', async () => {
    last = await transcriptOf(visitor)
    return last.turnId === null && last.forkedTurn === null && last.unapplied === null
  })
  if (!last) throw new Error('There is no transcript.')
  return last
}

/** The step at which the server is killed: the run in a fork until its review, the decision until it is applied, a rewind, or an undo. */
type Step = 'run' | 'decide' | 'rewind' | 'undo'

async function survive(step: Step, ms: number): Promise<void> {
  let server = await serve({ WARM_POOL_SIZE: '1', APPROVAL_MODE: 'review' })
  const { dataDir } = server
  let visitor = await enter(server)
  const kill = async () => {
    await delay(ms) // the moment is what the seed chooses, not a wait for something
    await server.kill9()
    server = await serve({ WARM_POOL_SIZE: '0' }, { dataDir })
    visitor = await enter(server, visitor)
  }
  const accept = async () => {
    const { review } = await quiet(visitor)
    if (!review) return
    const { reviewId, changes } = review
    await visitor.client.ask('review:decide', { reviewId, hash: changes.hash, accept: 'all' })
  }
  await visitor.client.ask('message', 'run echo once >> runs.txt')
  if (step === 'run') await kill()
  else await visitor.client.wait('review:opened')
  expect(await contentOf(server, visitor)).toBe('')
  if (step === 'decide') {
    void accept().catch(() => {}) // the server may die before it answers
    await kill()
  }
  if (step === 'rewind') {
    const from = (await transcriptOf(visitor)).entries.find(({ kind }) => kind === 'user')?.seq
    void visitor.client.ask('history:rewind', { from }).catch(() => {})
    await kill()
  }
  await accept()
  const { entries, review } = await quiet(visitor)
  const applied = entries.flatMap((entry) => (entry.kind === 'review' ? [entry.applied?.changes] : []))
  expect(review).toBeNull()
  expect(applied.length).toBeLessThanOrEqual(1)
  expect(await contentOf(server, visitor)).toBe(applied[0] ? 'once\n' : '')
  if (step === 'undo') {
    const changeId = applied[0]?.changeId ?? ''
    const { hash } = await planOf(server, visitor, changeId)
    void visitor.client.ask('files:revert', { changeId, scope: 'one', hash }).catch(() => {})
    await kill()
    await checkUndone(server, visitor)
  }
  await server.stop()
  await expectNothingLeft(server)
}

/** In Preview: the run in a fork until its card, or the decision until it has happened. */
async function survivePreview(step: 'preview' | 'keep' | 'discard', ms: number): Promise<void> {
  let server = await serve({ WARM_POOL_SIZE: '1', APPROVAL_MODE: 'preview' })
  let visitor = await enter(server)
  const decide = async () => {
    const { calls } = await transcriptOf(visitor)
    const [card] = Object.values(calls).filter(({ decision, preview }) => !decision && preview)
    const { callId, preview } = card ?? {}
    if (preview) await visitor.client.ask('tool:approval', { callId, hash: preview.hash, approved: step !== 'discard' })
  }
  await visitor.client.ask('message', 'run echo once >> runs.txt')
  if (step !== 'preview') {
    await visitor.client.wait('tool:previewed')
    void decide().catch(() => {}) // the server may die before it answers
  }
  await delay(ms) // the moment is what the seed chooses, not a wait for something
  await server.kill9()
  server = await serve({ WARM_POOL_SIZE: '0' }, { dataDir: server.dataDir })
  visitor = await enter(server, visitor)
  // The card is there, or it is answered.
  await eventually('the turn is over', async () => {
    await decide()
    return (await transcriptOf(visitor)).turnId === null
  })
  const [call] = Object.values((await quiet(visitor)).calls)
  expect(call?.decision).toMatchObject({ approved: step !== 'discard' })
  expect(call?.result?.isError).toBe(step === 'discard' ? undefined : false)
  expect(await contentOf(server, visitor)).toBe(step === 'discard' ? '' : 'once\n')
  const versions = (await (await get(server, 'changes', visitor)).json()) as VersionsReply
  expect(versions.versions).toHaveLength(step === 'discard' ? 0 : 1)
  await server.stop()
  await expectNothingLeft(server)
}

/** The files say whether it happened. If it did, the model hears of it with the next message, once. */
async function checkUndone(server: Served, visitor: Visitor): Promise<void> {
  await visitor.client.ask('message', 'hello')
  await visitor.client.wait('turn:end')
  const isUndone = (await contentOf(server, visitor)) === ''
  const told = (await transcriptOf(visitor)).entries.filter(({ kind }) => kind === 'reverted')
  expect(told).toHaveLength(isUndone ? 1 : 0)
}

/** A server that stops removes its sandboxes, so nothing may be left of it or of the one that was killed. */
async function expectNothingLeft({ deployment }: Served): Promise<void> {
  const engine = await openEngine(loadSettings({ env: {} }), silentLogger)
  try {
    await expect.poll(() => engine.list(deployment)).toEqual([])
  } finally {
    await engine.close()
  }
}

const random = seededRandom(SEED)
const momentsOf = <T>(steps: readonly T[]) =>
  steps.flatMap((step) => Array.from({ length: ROUNDS }, () => ({ step, ms: Math.round(random.between(0, STEP_MS)) })))
const moments = momentsOf(['run', 'decide', 'rewind', 'undo'] as const)

it.each(moments)('applies a review once or not at all if the server is killed in $step after $ms ms', ({ step, ms }) =>
  survive(step, ms)
)

it.each(momentsOf(['preview', 'keep', 'discard'] as const))(
  'applies a preview once or not at all if the server is killed in $step after $ms ms',
  ({ step, ms }) => survivePreview(step, ms)
)
