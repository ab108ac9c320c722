/**
 * The S3 client, and what its services do differently. Owns requests; does not know what the objects are. Invariant: it reads no
 * file of the user (`~/.aws`), because an MCP server may have written it.
 */
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand
} from '@aws-sdk/client-s3'
import { externalDataInterceptor } from '@smithy/core/config'
import { isAppError } from '../../lib/errors.ts'
import type { Operation } from '../../lib/observed.ts'
import { StartGate } from '../../lib/waiting/start-gate.ts'
import {
  contentOf,
  type ObjectContent,
  type ObjectPage,
  type ObjectStore,
  type OpenUpload,
  type StoredObject
} from './object-store.ts'
import { DEFAULT_LIMITS, type NextStep, type RequestLimits, retried } from './retried.ts'

export interface S3Options {
  bucket: string
  endpoint?: string | undefined
  region: string
  /** The bucket is in the path of the address, not in its host name. */
  isPathStyle: boolean
  /** Without them: a role of the machine, the container or the pod. */
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } | undefined
  limits?: RequestLimits
  /** Called after each attempt. */
  report?: (operation: Operation) => void
}

/** A probe must answer soon, also while the bucket does not. */
const PROBE_LIMITS: RequestLimits = { attemptMs: 3000, totalMs: 3000 }
const PART_BYTES = 8 * 1024 * 1024
const PARTS_AT_ONCE = 3
const SENT_AT_ONCE = 8
const READ_AT_ONCE = 8
const DELETED_AT_ONCE = 8
const TRANSIENT =
  /^(SlowDown|InternalError|ServiceUnavailable|RequestTimeout|Throttling.*|TooManyRequests.*|UnknownError|ConditionalRequestConflict|OperationAborted)$/
const SKEWED = /^(RequestTimeTooSkewed|RequestExpired)$/

export class S3ObjectStore implements ObjectStore {
  readonly #client: S3Client
  readonly #bucket: string
  readonly #limits: RequestLimits
  /** Every object that is being sent is in memory. */
  readonly #sending = new StartGate(SENT_AT_ONCE)
  /** Every answer is in memory until its caller has stored it. */
  readonly #reading = new StartGate(READ_AT_ONCE)
  readonly #report: NonNullable<S3Options['report']>

  constructor(options: S3Options) {
    hideUserFiles()
    this.#client = clientOf(options)
    this.#bucket = options.bucket
    this.#limits = options.limits ?? DEFAULT_LIMITS
    this.#report = options.report ?? (() => {})
  }

  put(key: string, content: ObjectContent): Promise<void> {
    return content.bytes > PART_BYTES ? this.#putParts(key, content) : this.#putWhole(key, content)
  }

  /** If a service knows no conditional writes, look whether the object exists before writing. */
  async create(key: string, content: Uint8Array): Promise<boolean> {
    const command = new PutObjectCommand({ ...this.#at(key), Body: content, IfNoneMatch: '*' })
    const answer = await this.#run('store an object', content.length, (abortSignal) =>
      this.#client.send(command, { abortSignal }).then(
        () => 'created' as const,
        (error: unknown) => {
          if (statusOf(error) === 412) return 'exists' as const
          if (statusOf(error) === 501) return 'unknown' as const
          throw error
        }
      )
    )
    if (answer !== 'unknown') return answer === 'created'
    if ((await this.#sizeOf(key)) !== undefined) return false
    await this.#putWhole(key, contentOf(content))
    return true
  }

  read(key: string, offset: number, length: number): Promise<{ bytes: Buffer; total: number } | undefined> {
    const command = new GetObjectCommand({ ...this.#at(key), Range: `bytes=${offset}-${offset + length - 1}` })
    const attempt = async (abortSignal: AbortSignal) => {
      const reply = await this.#client.send(command, { abortSignal }).catch(missing)
      if (!reply?.Body) return undefined
      const { buffer, byteOffset, byteLength } = await reply.Body.transformToByteArray()
      const total = Number(/\/(\d+)$/.exec(reply.ContentRange ?? '')?.[1] ?? byteLength)
      return { bytes: Buffer.from(buffer, byteOffset, byteLength), total }
    }
    return this.#inTurn(this.#reading, () => this.#run('send an object', length, attempt))
  }

  list(prefix: string, from?: string): Promise<ObjectPage<StoredObject>> {
    const command = new ListObjectsV2Command({ Bucket: this.#bucket, Prefix: prefix, ContinuationToken: from })
    return this.#run('list objects', 0, async (abortSignal) => {
      const reply = await this.#client.send(command, { abortSignal })
      const found = (reply.Contents ?? []).map(({ Key = '', Size = 0, LastModified }) => {
        return { key: Key, bytes: Size, modifiedAt: LastModified?.getTime() ?? Number.POSITIVE_INFINITY }
      })
      const next = reply.IsTruncated ? reply.NextContinuationToken : undefined
      return { found, now: this.#serviceClock(), ...(next !== undefined && { next }) }
    })
  }

  /** One by one: services disagree about the checksum that a request for several needs, or know no such request. */
  async remove(keys: readonly string[]): Promise<void> {
    const queue = keys.values()
    const work = async () => {
      for (const key of queue) {
        const command = new DeleteObjectCommand(this.#at(key))
        await this.#run('delete objects', 0, (abortSignal) =>
          this.#client.send(command, { abortSignal }).catch(missing)
        )
      }
    }
    await Promise.all(Array.from({ length: DELETED_AT_ONCE }, work))
  }

  listUploads(prefix: string, from?: string): Promise<ObjectPage<OpenUpload>> {
    const [KeyMarker, UploadIdMarker] = from ? from.split('\n') : []
    const page = { Bucket: this.#bucket, Prefix: prefix, KeyMarker, UploadIdMarker }
    return this.#run('list uploads', 0, async (abortSignal) => {
      const reply = await this.#client.send(new ListMultipartUploadsCommand(page), { abortSignal })
      const found = (reply.Uploads ?? []).map(({ Key = '', UploadId = '', Initiated }) => {
        return { key: Key, uploadId: UploadId, startedAt: Initiated?.getTime() ?? Number.POSITIVE_INFINITY }
      })
      const next = reply.IsTruncated ? `${reply.NextKeyMarker}\n${reply.NextUploadIdMarker}` : undefined
      return { found, now: this.#serviceClock(), ...(next !== undefined && { next }) }
    })
  }

  async abortUpload({ key, uploadId }: OpenUpload): Promise<void> {
    const command = new AbortMultipartUploadCommand({ ...this.#at(key), UploadId: uploadId })
    await this.#run('end an upload', 0, (abortSignal) => this.#client.send(command, { abortSignal }).catch(missing))
  }

  async probe(): Promise<void> {
    const command = new HeadBucketCommand({ Bucket: this.#bucket })
    await this.#run('answer', 0, (abortSignal) => this.#client.send(command, { abortSignal }), PROBE_LIMITS)
  }

  close(): void {
    this.#client.destroy()
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: key }
  }

  async #putWhole(key: string, content: ObjectContent): Promise<void> {
    await this.#inTurn(this.#sending, async () => {
      const command = new PutObjectCommand({ ...this.#at(key), Body: await content.read(0, content.bytes) })
      await this.#run('store an object', content.bytes, (abortSignal) => this.#client.send(command, { abortSignal }))
    })
  }

  /** The object exists only once the upload is completed. The collector aborts uploads that never are. */
  async #putParts(key: string, content: ObjectContent): Promise<void> {
    const create = new CreateMultipartUploadCommand(this.#at(key))
    const { UploadId } = await this.#run('begin an upload', 0, (abortSignal) =>
      this.#client.send(create, { abortSignal })
    )
    const upload = { ...this.#at(key), UploadId }
    const Parts = await this.#sendParts(upload, content)
    await this.#run('complete an upload', 0, async (abortSignal) => {
      const command = new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts } })
      try {
        await this.#client.send(command, { abortSignal })
      } catch (error) {
        // An earlier attempt succeeded and its answer was lost.
        const isThere = statusOf(error) === 404 && (await this.#sizeOf(key)) === content.bytes
        if (!isThere) throw error
      }
    })
  }

  async #sendParts(
    upload: { Bucket: string; Key: string; UploadId: string | undefined },
    content: ObjectContent
  ): Promise<CompletedPart[]> {
    const count = Math.ceil(content.bytes / PART_BYTES)
    const parts: CompletedPart[] = []
    let next = 1
    const work = async () => {
      while (next <= count) {
        const PartNumber = next++
        const offset = (PartNumber - 1) * PART_BYTES
        await this.#inTurn(this.#sending, async () => {
          const Body = await content.read(offset, Math.min(PART_BYTES, content.bytes - offset))
          const command = new UploadPartCommand({ ...upload, PartNumber, Body })
          const { ETag } = await this.#run('store a part', Body.length, (abortSignal) =>
            this.#client.send(command, { abortSignal })
          )
          parts[PartNumber - 1] = { PartNumber, ETag }
        }).catch((error: unknown) => {
          // The others send no more.
          next = count + 1
          throw error
        })
      }
    }
    const sent = await Promise.allSettled(Array.from({ length: PARTS_AT_ONCE }, work))
    for (const each of sent) if (each.status === 'rejected') throw each.reason
    return parts
  }

  /** If the service does not answer one, the others need not wait for their own deadlines. */
  #inTurn<T>(gate: StartGate, job: () => Promise<T>): Promise<T> {
    return gate.run(() =>
      job().catch((error: unknown) => {
        if (isAppError(error, 'objects_unavailable')) gate.refuseWaiting(error)
        throw error
      })
    )
  }

  async #sizeOf(key: string): Promise<number | undefined> {
    return (await this.list(key)).found.find((object) => object.key === key)?.bytes
  }

  #run<T>(what: string, bytes: number, work: (signal: AbortSignal) => Promise<T>, limits = this.#limits): Promise<T> {
    const attempt = async (signal: AbortSignal) => {
      const startedAt = performance.now()
      try {
        const result = await work(signal)
        this.#report({ name: what, ms: performance.now() - startedAt, bytes })
        return result
      } catch (error) {
        this.#report({ name: what, ms: performance.now() - startedAt, error, bytes })
        throw error
      }
    }
    return retried({ what, bytes, limits, nextStep: nextStepAfter, attempt })
  }

  /** The client learns how far our clock is off from the answers. */
  #serviceClock(): number {
    return Date.now() + this.#client.config.systemClockOffset
  }
}

function clientOf({ endpoint, region, isPathStyle, credentials }: S3Options): S3Client {
  return new S3Client({
    region,
    forcePathStyle: isPathStyle,
    // The SDK would take another address from the user's files.
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials && { credentials }),
    // Our own retries have a deadline.
    maxAttempts: 1,
    retryMode: 'standard',
    defaultsMode: 'standard',
    requestHandler: { connectionTimeout: 5000, socketAcquisitionWarningTimeout: 60_000 },
    // Ceph and others know no CRC32. The content is checked by its own hash.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED'
  })
}

/** Makes the SDK see empty user files: `~/.aws/config` could name another address, or a program to start. */
function hideUserFiles(): void {
  const empty = Promise.resolve('')
  Object.setPrototypeOf(externalDataInterceptor.getFileRecord(), new Proxy({}, { get: () => empty }))
}

function nextStepAfter(error: unknown): NextStep {
  if (!(error instanceof S3ServiceException)) return isOurFault(error) ? 'final' : 'retry'
  if (SKEWED.test(error.name)) return 'skewed'
  const status = statusOf(error)
  const isTransient = status === undefined || status >= 500 || status === 429 || status === 408
  // Ceph answers 501 and 411 for what it does not know; trying again does not help.
  return (isTransient && status !== 501) || TRANSIENT.test(error.name) ? 'retry' : 'final'
}

/** Without credentials, or with an address that does not parse, nothing was sent. */
function isOurFault(error: unknown): boolean {
  return error instanceof Error && (error.name === 'CredentialsProviderError' || error instanceof TypeError)
}

function statusOf(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined
}

function missing(error: unknown): undefined {
  const isMissing = statusOf(error) === 404 && error instanceof Error && error.name !== 'NoSuchBucket'
  if (!isMissing) throw error
}
