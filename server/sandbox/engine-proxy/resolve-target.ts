/** Resolves the name in a call to the full id of what it means. It is looked up once, and only the id is used from then on. */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { isRecord } from '../../lib/is-record.ts'
import { APP, CHILD_APP, LABEL } from '../docker/engine/container-spec.ts'
import { IMAGE_LABEL } from '../docker/image/image-assets.ts'
import type { Call } from './allowed-calls.ts'

const LOOK_MS = 10_000
const MAX_ANSWER_BYTES = 4 * 1024 * 1024
const FULL_ID = /^[0-9a-f]{64}$/
const IMAGE_NAME = /^(?!.*\.\.)[\w][\w./:@-]{0,254}$/

/** The engine has no such object. The call is not passed on, because it might find another object a moment later. */
export class NotFound extends Error {}

/** The full id of what the call is about, or undefined if it is not about a container. Rejects if the container is not ours. */
export async function resolveTarget(engineSocket: string, call: Call): Promise<string | undefined> {
  if (call.kind === 'read' || call.kind === 'create' || call.kind === 'image') return undefined
  if (call.kind !== 'exec') return ownContainer(engineSocket, call.id)
  const exec = await askEngine(engineSocket, `/exec/${call.id}/json`, `No such exec instance: ${call.id}`)
  await ownContainer(engineSocket, String(exec.ContainerID))
  return fullId(exec.ID)
}

/**
 * The fields of an image that the orchestrator needs. Any image may be the base of a sandbox, so its environment and history are
 * not shown.
 */
export async function describeImage(engineSocket: string, name: string): Promise<Record<string, unknown>> {
  const { Id, RepoTags, Architecture, Os, Size, Config } = await askEngine(
    engineSocket,
    `/images/${name}/json`,
    `No such image: ${name}`
  )
  const { Labels, Volumes } = fieldsOf(Config)
  return { Id, RepoTags, Architecture, Os, Size, Config: { Labels, Volumes } }
}

/** Returns the id of an image that was built for sandboxes and declares no volumes. */
export async function resolveImage(engineSocket: string, name: unknown): Promise<string> {
  if (typeof name !== 'string' || !IMAGE_NAME.test(name)) throw new Error('Image has a value that is not allowed')
  const image = await askEngine(engineSocket, `/images/${name}/json`, `No such image: ${name}`)
  const { Labels, Volumes } = fieldsOf(image.Config)
  if (fieldsOf(Labels)[IMAGE_LABEL] === undefined) throw new Error('the image is not a sandbox image')
  if (Object.keys(fieldsOf(Volumes)).length > 0) throw new Error('the image declares volumes')
  const [, id = ''] = /^sha256:([0-9a-f]{64})$/.exec(String(image.Id)) ?? [undefined, String(image.Id)]
  return `sha256:${fullId(id)}`
}

async function ownContainer(engineSocket: string, name: string): Promise<string> {
  const container = await askEngine(engineSocket, `/containers/${name}/json`, `No such container: ${name}`)
  const app = fieldsOf(fieldsOf(container.Config).Labels)[LABEL.app]
  if (app !== APP && app !== CHILD_APP) throw new Error('the container is not ours')
  return fullId(container.Id)
}

function fullId(id: unknown): string {
  if (typeof id !== 'string' || !FULL_ID.test(id)) throw new Error('the engine did not give the full id')
  return id
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

async function askEngine(engineSocket: string, path: string, missing: string): Promise<Record<string, unknown>> {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
  const request = httpRequest({ socketPath: engineSocket, path, timeout: LOOK_MS }, (response) => {
    const read = async () => {
      const body = await readBody(response, MAX_ANSWER_BYTES)
      if (response.statusCode === 404) throw new NotFound(missing)
      if (response.statusCode !== 200) throw new Error(`the engine answered ${response.statusCode}`)
      return fieldsOf(JSON.parse(body.toString('utf8')))
    }
    read().then(resolve, reject)
  })
  request.on('timeout', () => request.destroy(new Error('the engine does not respond')))
  request.on('error', reject)
  request.end()
  return promise
}

export async function readBody(message: IncomingMessage, max: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of message) {
    bytes += chunk.length
    if (bytes > max) throw new Error('the body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
