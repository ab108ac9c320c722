/**
 * The real server is killed with -9 while it previews, keeps, reviews, rewinds and undoes: at a random moment of each step, from a seed. Afterwards the change is in
 * the workspace once or not at all, the card is there or answered, and no fork is left. `KILL_ROUNDS` tries more moments than the few here.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, it } from 'vitest'
import type { VersionsReply } from '../../../contract/effects/effect-replies.ts'
import { seededRandom } from '../../chaos/random.ts'
import { eventually } from '../../support/eventually.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'
import {
  contentOf,
  enter,
  expectNothingLeft,
  get,
  OFTEN,
  planOf,
  quiet,
  transcriptOf,
  type Visitor
} from './kill-visitor.ts'

afterAll(stopServers)

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 1)
const SEED = Number(process.env.KILL_SEED ?? 1)
/** About as long as each step takes. */
const STEP_MS = 400

/** The step at which the server is killed: the run in a fork until its review, the decision until it is applied, a rewind, or an undo. */
type Step = 'run' | 'decide' | 'rewind' | 'undo'

async function survive(step: Step, ms: number): Promise<void> {
  let server = await serve({ ...OFTEN, WARM_POOL_SIZE: '1', APPROVAL_MODE: 'review' })
  const { dataDir } = server
  let visitor = await enter(server)
  const kill = async () => {
    await delay(ms) // the moment is what the seed chooses, not a wait for something
    await server.kill9()
    server = await serve({ ...OFTEN, WARM_POOL_SIZE: '0' }, { dataDir })
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
  let server = await serve({ ...OFTEN, WARM_POOL_SIZE: '1', APPROVAL_MODE: 'preview' })
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
  server = await serve({ ...OFTEN, WARM_POOL_SIZE: '0' }, { dataDir: server.dataDir })
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
