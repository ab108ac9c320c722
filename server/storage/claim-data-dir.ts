/**
 * Checks at startup that the data folder belongs to the store: with another folder the sessions would have no files. Both hold
 * the deployment's id. A store that was emptied gets the folder's id back, so only a different id is an error.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { AppError } from '../lib/errors.ts'
import type { CheckpointStore } from './checkpoint-store.ts'
import { readDeploymentId, rememberDeploymentId, rememberedIds } from './deployment-file.ts'
import type { Store } from './store.ts'

export interface FolderClaim {
  dataDir: string
  /** The file in which the folder stores the id of this store's deployment. */
  file: string
  /** The id that we offered to the store in case it is empty. */
  offered: string
  store: Pick<Store, 'sessions' | 'events'>
  checkpoints: Pick<CheckpointStore, 'has'>
  /** The operator has confirmed that this folder is the right one. */
  isAccepted: boolean
}

/** An instance that starts at the same time may already have set the id in the store, but not yet in the folder. */
const ID_APPEARS_WITHIN_MS = 5_000
const LOOK_EVERY_MS = 50
const SESSIONS_LOOKED_AT = 200

/** Throws `wrong_data_dir` if this folder does not belong to the store's deployment. */
export async function claimDataDir(claim: FolderClaim): Promise<void> {
  const { file, offered, store, isAccepted } = claim
  const id = await store.sessions.deploymentId()
  if (id !== offered && !isAccepted) await checkFolder(claim, id)
  rememberDeploymentId(file, id)
}

/** For commands that only look: why this folder can't be the one of the store's deployment. */
export async function findWrongDataDir(
  claim: Omit<FolderClaim, 'offered' | 'isAccepted'>
): Promise<string | undefined> {
  const { dataDir, store } = claim
  if ((await store.sessions.list()).length === 0) return undefined
  return rememberedIds(dataDir).has(await store.sessions.deploymentId()) ? undefined : problemOf(claim)
}

async function checkFolder(claim: FolderClaim, id: string): Promise<void> {
  const { dataDir, file } = claim
  // The same Redis under another address has another file.
  if (rememberedIds(dataDir).has(id)) return
  const problem = await problemOf(claim)
  if (problem === undefined) return
  for (let waited = 0; waited < ID_APPEARS_WITHIN_MS; waited += LOOK_EVERY_MS) {
    if (readDeploymentId(file) === id) return
    await delay(LOOK_EVERY_MS)
  }
  const advice = `Set DATA_DIR to the folder that all instances on this Redis share, or DEPLOYMENT to another name. If this folder is the right one, start once with "serve --accept-data-dir".`
  throw new AppError('conflict', 'wrong_data_dir', `${problem} ${advice}`)
}

async function problemOf({
  dataDir,
  file,
  store,
  checkpoints
}: Omit<FolderClaim, 'offered' | 'isAccepted'>): Promise<string | undefined> {
  if (readDeploymentId(file) !== undefined)
    return `The data folder ${dataDir} belongs to another deployment than the one in Redis: sessions would not find their files.`
  const records = (await store.sessions.list()).toSorted((a, b) => b.activeAt - a.activeAt).slice(0, SESSIONS_LOOKED_AT)
  // This folder dates from before ids were stored in it.
  for (const { sessionId } of records) if (await checkpoints.has(sessionId)) return undefined
  if ((await store.sessions.instances()).length > 0)
    return `Other instances are running on this Redis, and they use another data folder than ${dataDir}.`
  for (const { sessionId, containerId } of records) {
    if (containerId !== null || (await hasRunTools(store, sessionId)))
      return `Redis has sessions with files, and the data folder ${dataDir} has none of them.`
  }
  return undefined
}

/** A session that has never run a tool has no files either. */
async function hasRunTools({ events }: FolderClaim['store'], sessionId: string): Promise<boolean> {
  return (await events.read(sessionId, { bareUntil: Number.POSITIVE_INFINITY })).some(
    ({ type }) => type === 'tool:started'
  )
}
