/**
 * The real server kills itself at an exact place of each step: fork, run, diff, store, decide, apply. The next one goes on. Afterwards the change is in the
 * workspace once or not at all, everything is decided, and no fork is left. `KILL_POINTS=all` tries every place in every way; by default a seed
 * chooses one of each step.
 */
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, it } from 'vitest'
import type { RevertPlanReply, VersionsReply } from '../../../contract/effects/effect-replies.ts'
import type { Transcript } from '../../../contract/transcript.ts'
import { packageRoot } from '../../../server/lib/files/package-root.ts'
import { KILL_POINTS } from '../../chaos/kill-points.ts'
import { seededRandom } from '../../chaos/random.ts'
import { eventually } from '../../support/eventually.ts'
import { type Served, serve, stopServers } from '../../support/serve.ts'
import { enter, expectNothingLeft, get, OFTEN, planOf, quiet, transcriptOf, type Visitor } from './kill-visitor.ts'

afterAll(stopServers)

const WAYS = ['preview', 'review', 'undo'] as const
type Way = (typeof WAYS)[number]

const ALL = Object.keys(KILL_POINTS).flatMap((point) =>
  WAYS.filter((way) => isPassed(point, way)).map((way) => ({ point, way }))
)

function isPassed(point: string, way: Way): boolean {
  if (way === 'undo') return point.startsWith('apply') || point === 'store: only the content is stored'
  return !point.startsWith('decide') || point.includes(way)
}

/** One of each step. */
function chosen(): typeof ALL {
  const random = seededRandom(Number(process.env.KILL_SEED ?? 1))
  const steps = Map.groupBy(ALL, ({ point }) => point.split(':')[0])
  return [...steps.values()].map((step) => random.pick(step))
}

/** How often the place is passed before the step: by the files that are there at first, and by the decision about the call that makes them. */
function passesBefore(point: string, way: Way): number {
  if (point.startsWith('store: only')) return way === 'undo' ? 2 : 1
  return point.startsWith('decide: a kept') ? 1 : 0
}

async function filesOf(server: Served, visitor: Visitor): Promise<Record<string, string>> {
  const { files } = (await (await get(server, 'files', visitor)).json()) as { files: { path: string }[] }
  const texts = files.map(async ({ path }) => [path, await (await get(server, `file?path=${path}`, visitor)).text()])
  return Object.fromEntries(await Promise.all(texts))
}

/** Decides whatever waits: keeps it, or accepts it. */
async function decide(visitor: Visitor): Promise<Transcript> {
  const transcript = await transcriptOf(visitor)
  const { calls, review, turnId } = transcript
  for (const { callId, decision, preview } of Object.values(calls))
    if (preview && !decision) await visitor.client.ask('tool:approval', { callId, hash: preview.hash, approved: true })
  if (review && turnId === null)
    await visitor.client.ask('review:decide', {
      reviewId: review.reviewId,
      hash: review.changes.hash,
      accept: 'all'
    })
  return transcript
}

const OLD = { 'old.txt': 'old\n' }
const NEW = { 'runs.txt': 'once\n' }

async function survive(point: string, way: Way): Promise<void> {
  const plant = pathToFileURL(join(import.meta.dirname, '../../chaos/plant-bug.ts')).href
  const deadly = { NODE_OPTIONS: `--import ${plant}`, PLANTED_BUG: point, PASSES: `${passesBefore(point, way)}` }
  let server = await serve(
    { ...OFTEN, WARM_POOL_SIZE: '1', ...deadly },
    { program: join(packageRoot(), 'server/main.ts') }
  )
  const exited = once(server.child, 'exit')
  let visitor = await enter(server)
  await visitor.client.sh('echo old > old.txt')
  const command = 'rm old.txt; echo once >> runs.txt'
  if (way === 'undo') {
    await visitor.client.sh(command)
    const changeId = await newest(server, visitor)
    const { hash } = await planOf(server, visitor, changeId)
    void visitor.client.ask('files:revert', { changeId, scope: 'one', hash }).catch(() => {})
  } else {
    await visitor.client.ask('mode:select', { mode: way })
    await visitor.client.ask('message', `run ${command}`)
    void decideUntil(visitor, () => server.child.signalCode !== null).catch(() => {}) // it dies with the server
  }
  expect(await exited).toEqual([null, 'SIGKILL'])
  server = await serve({ ...OFTEN, WARM_POOL_SIZE: '0' }, { dataDir: server.dataDir })
  visitor = await enter(server, visitor)
  await (way === 'undo' ? checkUndone(server, visitor) : checkApplied(server, visitor, way))
  await server.stop()
  await expectNothingLeft(server)
}

async function decideUntil(visitor: Visitor, isOver: () => boolean): Promise<void> {
  await eventually('the server dies', async () => {
    if (!isOver()) await decide(visitor)
    return isOver()
  })
}

async function newest(server: Served, visitor: Visitor): Promise<string> {
  const { versions } = (await (await get(server, 'changes', visitor)).json()) as VersionsReply
  return versions[0]?.changeId ?? ''
}

async function checkApplied(server: Served, visitor: Visitor, way: Way): Promise<void> {
  await eventually('everything is decided', async () => {
    const { turnId, review } = await decide(visitor)
    return turnId === null && review === null
  })
  const { entries, calls } = await quiet(visitor)
  const call = Object.values(calls).at(-1)
  const reviews = entries.flatMap((entry) => (entry.kind === 'review' ? [entry] : []))
  expect(reviews.length).toBeLessThanOrEqual(way === 'review' ? 1 : 0)
  // A call that died in a review may have left no changes. One in a preview runs again in another fork.
  const version = way === 'review' ? reviews[0]?.applied?.changes : call?.result?.changes
  if (way === 'preview') expect(call).toMatchObject({ decision: { approved: true }, result: { isError: false } })
  expect(await filesOf(server, visitor)).toEqual(version ? NEW : OLD)
  const { versions } = (await (await get(server, 'changes', visitor)).json()) as VersionsReply
  // If only a part was written, the next server finds it before it goes on, and nobody has told it who made it.
  const decided = versions.filter(({ about }) => about.by !== 'background')
  expect(decided.map(({ changeId }) => changeId)).toHaveLength(version ? 2 : 1)
}

/** The files say whether it happened. If it did, the model hears of it with the next message, once. */
async function checkUndone(server: Served, visitor: Visitor): Promise<void> {
  await visitor.client.ask('message', 'hello')
  await visitor.client.wait('turn:end')
  const files = await filesOf(server, visitor)
  const told = (await transcriptOf(visitor)).entries.filter(({ kind }) => kind === 'reverted')
  expect(files).toEqual(told.length === 1 ? OLD : NEW)
  expect(told.length).toBeLessThanOrEqual(1)
  const plan: RevertPlanReply = await planOf(server, visitor, await newest(server, visitor))
  expect(plan.files).not.toEqual([])
}

it.each(process.env.KILL_POINTS === 'all' ? ALL : chosen())(
  'changes the workspace once or not at all if the server dies: $way, $point',
  ({ point, way }) => survive(point, way)
)
