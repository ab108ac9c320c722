/**
 * An S3 service in memory, over HTTP, that can misbehave: tests of the real client need no real service. It knows what our client
 * sends and nothing else, checks no signatures, and takes any bucket. With `onward`, it passes requests on to a real service instead,
 * so that this one misbehaves in the same ways.
 */
import { createHash, randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as openRequest,
  type Server,
  type ServerResponse
} from 'node:http'
import type { AddressInfo } from 'node:net'

interface Held {
  bytes: Buffer
  modifiedAt: number
}

/**
 * The fate of a request. `lost`: it is done, and its answer never arrives. `cut`: it is not done, and the connection breaks. `silent`: it
 * is not done, and the connection stays open. `stalled`: it is done, and its answer ends after the first half.
 */
export type Fault = 'lost' | 'cut' | 'silent' | 'stalled' | 'busy' | 'conflict' | 'slow' | 'skewed' | 'forbidden'

export interface FakeRequest {
  method: string
  key: string
  query: URLSearchParams
}

interface Answer {
  status: number
  headers?: OutgoingHttpHeaders
  body?: string | Buffer
}

const SLOW_MS = 150
const REFUSALS: Partial<Record<Fault, Answer>> = {
  busy: failed(503, 'SlowDown'),
  conflict: failed(409, 'ConditionalRequestConflict'),
  skewed: failed(403, 'RequestTimeTooSkewed'),
  forbidden: failed(403, 'AccessDenied')
}

export class FakeObjectService {
  readonly objects = new Map<string, Held>()
  readonly uploads = new Map<string, { key: string; startedAt: number; parts: Map<number, Buffer> }>()
  readonly requests: FakeRequest[] = []
  /** Decides about each request before it is done. */
  fault: (request: FakeRequest) => Fault | undefined = () => undefined
  /** The service's clock minus ours. */
  skewMs = 0
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response))
  /** The address of a real service. */
  readonly #onward: string | undefined

  constructor(onward?: string) {
    this.#onward = onward
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /** Makes objects older, as if time had passed. */
  age(ms: number): void {
    for (const held of [...this.objects.values()]) held.modifiedAt -= ms
    for (const upload of this.uploads.values()) upload.startedAt -= ms
  }

  keys(suffix = ''): string[] {
    return [...this.objects.keys()].filter((key) => key.endsWith(suffix)).sort()
  }

  get #now(): number {
    return Date.now() + this.skewMs
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://service')
    const key = decodeURIComponent(url.pathname.split('/').slice(2).join('/'))
    const asked: FakeRequest = { method: request.method ?? '', key, query: url.searchParams }
    const body = await collect(request).catch(() => undefined)
    if (!body) return
    this.requests.push(asked)
    const fault = this.fault(asked)
    if (fault === 'slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS))
    if (fault === 'silent') return
    const refusal = fault && REFUSALS[fault]
    const perform = () => (this.#onward ? passOn(this.#onward, request, body) : this.#perform(asked, request, body))
    const answer = refusal ?? (fault === 'cut' ? undefined : await perform())
    if (!answer || fault === 'lost') {
      request.socket.destroy()
      return
    }
    const headers = { date: new Date(this.#now).toUTCString(), ...answer.headers }
    // The answer to HEAD has a length and no content.
    if (asked.method === 'HEAD') return void response.writeHead(answer.status, headers).end()
    if (fault !== 'stalled') return void response.writeHead(answer.status, headers).end(answer.body)
    const whole = Buffer.from(answer.body ?? '')
    response.writeHead(answer.status, { ...headers, 'content-length': whole.length + 1 })
    response.write(whole.subarray(0, whole.length / 2))
  }

  #perform({ method, key, query }: FakeRequest, request: IncomingMessage, body: Buffer): Answer {
    const uploadId = query.get('uploadId') ?? ''
    if (method === 'POST' && query.has('uploads')) return this.#beginUpload(key)
    if (method === 'POST' && uploadId) return this.#complete(uploadId)
    // As older MinIO does with the checksums of the current client.
    if (method === 'POST' && query.has('delete')) return failed(400, 'MissingContentMD5')
    if (method === 'PUT' && uploadId) return this.#putPart(uploadId, Number(query.get('partNumber')), body)
    if (method === 'PUT') return this.#put(key, request.headers['if-none-match'], body)
    if (method === 'DELETE') {
      if (uploadId) this.uploads.delete(uploadId)
      else this.objects.delete(key)
      return { status: 204 }
    }
    if (method === 'HEAD') return { status: 200 }
    if (key === '') return query.has('uploads') ? this.#listUploads(query) : this.#list(query)
    return this.#get(key, request.headers.range)
  }

  #put(key: string, condition: string | undefined, bytes: Buffer): Answer {
    if (condition === '*' && this.objects.has(key)) return failed(412, 'PreconditionFailed')
    this.objects.set(key, { bytes, modifiedAt: this.#now })
    return { status: 200, headers: { etag: `"${createHash('md5').update(bytes).digest('hex')}"` } }
  }

  #get(key: string, range: string | undefined): Answer {
    const held = this.objects.get(key)
    if (!held) return failed(404, 'NoSuchKey')
    const [, from = '0', to = ''] = /^bytes=(\d+)-(\d+)$/.exec(range ?? '') ?? []
    const part = held.bytes.subarray(Number(from), Math.min(Number(to) + 1, held.bytes.length))
    const contentRange = `bytes ${from}-${Number(from) + part.length - 1}/${held.bytes.length}`
    return { status: 206, headers: { 'content-range': contentRange, 'content-length': part.length }, body: part }
  }

  #beginUpload(key: string): Answer {
    const uploadId = randomUUID()
    this.uploads.set(uploadId, { key, startedAt: this.#now, parts: new Map() })
    const xml = `<UploadId>${uploadId}</UploadId><Key>${key}</Key>`
    return { status: 200, body: `<InitiateMultipartUploadResult>${xml}</InitiateMultipartUploadResult>` }
  }

  #putPart(uploadId: string, n: number, bytes: Buffer): Answer {
    const upload = this.uploads.get(uploadId)
    if (!upload) return failed(404, 'NoSuchUpload')
    upload.parts.set(n, bytes)
    return { status: 200, headers: { etag: `"${n}"` } }
  }

  #complete(uploadId: string): Answer {
    const upload = this.uploads.get(uploadId)
    if (!upload) return failed(404, 'NoSuchUpload')
    const parts = [...upload.parts].sort(([a], [b]) => a - b).map(([, bytes]) => bytes)
    this.objects.set(upload.key, { bytes: Buffer.concat(parts), modifiedAt: this.#now })
    this.uploads.delete(uploadId)
    return { status: 200, body: `<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>` }
  }

  /** In pages of three, so that every test of a list turns pages. */
  #list(query: URLSearchParams): Answer {
    const after = query.get('continuation-token') ?? ''
    const all = this.keys().filter((key) => key.startsWith(query.get('prefix') ?? '') && key > after)
    const page = all.slice(0, 3)
    const rows = page.map((key) => {
      const { bytes, modifiedAt } = this.objects.get(key) ?? { bytes: Buffer.alloc(0), modifiedAt: 0 }
      const at = new Date(modifiedAt).toISOString()
      return `<Contents><Key>${key}</Key><Size>${bytes.length}</Size><LastModified>${at}</LastModified></Contents>`
    })
    const isMore = all.length > page.length
    const more = isMore ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : ''
    const xml = `<IsTruncated>${isMore}</IsTruncated>${more}${rows.join('')}`
    return { status: 200, body: `<ListBucketResult>${xml}</ListBucketResult>` }
  }

  #listUploads(query: URLSearchParams): Answer {
    const found = [...this.uploads].filter(([, { key }]) => key.startsWith(query.get('prefix') ?? ''))
    const rows = found.map(([id, { key, startedAt }]) => {
      const at = new Date(startedAt).toISOString()
      return `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${at}</Initiated></Upload>`
    })
    const xml = `<IsTruncated>false</IsTruncated>${rows.join('')}`
    return { status: 200, body: `<ListMultipartUploadsResult>${xml}</ListMultipartUploadsResult>` }
  }
}

/** With its path and all headers as they are, because they are signed. */
function passOn(onward: string, { method, url, headers }: IncomingMessage, body: Buffer): Promise<Answer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Answer | undefined>()
  const { hostname: host, port } = new URL(onward)
  // Our server has answered this one.
  const { expect: _, ...sent } = headers
  const request = openRequest({ host, port, method, path: url, headers: sent }, (reply) => {
    const { 'transfer-encoding': _chunked, connection: _kept, ...rest } = reply.headers
    const answered = (content: Buffer) => resolve({ status: reply.statusCode ?? 502, headers: rest, body: content })
    collect(reply).then(answered, () => resolve(undefined))
  })
  request.on('error', () => resolve(undefined))
  request.end(body)
  return promise
}

function failed(status: number, code: string): Answer {
  return { status, body: `<Error><Code>${code}</Code><Message>${code}</Message></Error>` }
}

async function collect(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}
