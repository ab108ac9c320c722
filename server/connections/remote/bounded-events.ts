import { harmlessJson } from '../../lib/streams/hostile-json.ts'
import { LineReader } from '../../lib/streams/line-reader.ts'

interface Field {
  name: string
  value: string
}

const FIELDS = new Set(['data', 'event', 'id', 'retry'])
const BYTE_ORDER_MARK = Buffer.from('\uFEFF')
const MAX_FIELDS = 100_000
/** Lower limit, against a server that ends every stream and wants to be asked again at once. */
const MIN_RETRY_MS = 500
const COLON = 0x3a
const SPACE = 0x20
const RETURN = 0x0d

interface LastWord {
  answer(): object | undefined
  /** Aborts when nobody waits for the real answer any more. */
  isLeft: AbortSignal
}

/**
 * Checks server-sent events one by one and writes them again, so that the next reader sees the same lines. `refusal` replaces an
 * event that is too large and ends the stream; without a `refusal`, only that event is dropped. At the end `lastWord` is sent in
 * place of a missing answer; a reader that already has its answer ignores it, and a resumable stream needs none.
 */
export function boundedEvents(
  maxBytes: number,
  refusal: () => object | undefined,
  lastWord?: LastWord
): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream(new EventFilter(maxBytes, refusal, lastWord))
}

class EventFilter {
  readonly #maxBytes: number
  readonly #refusal: () => object | undefined
  readonly #lastWord: LastWord | undefined
  readonly #lines: LineReader
  #fields: Field[] = []
  /** Counted since the last event or comment. */
  #bytes = 0
  #isFirstLine = true
  #isSkipping = false
  #isOver = false
  /** The client can resume it with a GET and the last event id. */
  #isResumable = false
  #ready: Buffer[] = []

  constructor(maxBytes: number, refusal: () => object | undefined, lastWord: LastWord | undefined) {
    this.#maxBytes = maxBytes
    this.#refusal = refusal
    this.#lastWord = lastWord
    this.#lines = new LineReader(maxBytes, { line: (line) => this.#onLine(line), oversize: () => this.#refuse() })
  }

  transform(chunk: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void {
    this.#bytes += chunk.length
    this.#lines.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    // A line that never ends is not reported as a line.
    if (this.#bytes > this.#maxBytes) this.#refuse()
    for (const event of this.#ready) controller.enqueue(event)
    this.#ready = []
    if (this.#isOver) controller.terminate()
  }

  flush(controller: TransformStreamDefaultController<Uint8Array>): void {
    const { answer, isLeft } = this.#lastWord ?? {}
    if (this.#isResumable && !isLeft?.aborted) return
    const value = answer?.()
    if (value) controller.enqueue(write([{ name: 'data', value: JSON.stringify(value) }]))
  }

  /** A line may end in CR LF or in CR alone. */
  #onLine(bytes: Buffer): void {
    let line = bytes
    if (this.#isFirstLine && line.subarray(0, 3).equals(BYTE_ORDER_MARK)) line = line.subarray(3)
    this.#isFirstLine = false
    if (line.at(-1) === RETURN) line = line.subarray(0, -1)
    for (let end = line.indexOf(RETURN); end !== -1; end = line.indexOf(RETURN)) {
      this.#take(line.subarray(0, end))
      line = line.subarray(end + 1)
    }
    this.#take(line)
  }

  #take(line: Buffer): void {
    if (line.length === 0) {
      this.#dispatch()
      return
    }
    if (this.#isSkipping) return
    const colon = line.indexOf(COLON)
    const name = line.toString('latin1', 0, colon === -1 ? line.length : colon)
    if (FIELDS.has(name)) {
      const start = line[colon + 1] === SPACE ? colon + 2 : colon + 1
      const value = colon === -1 ? '' : line.toString('utf8', start)
      const isHasty = name === 'retry' && !(Number(value) >= MIN_RETRY_MS)
      this.#fields.push({ name, value: isHasty ? String(MIN_RETRY_MS) : value })
      if (this.#fields.length > MAX_FIELDS) this.#refuse()
    } else if (this.#fields.length === 0) this.#bytes = 0
  }

  #dispatch(): void {
    const fields = this.#fields
    const isSkipped = this.#isSkipping || this.#isOver
    this.#fields = []
    this.#bytes = 0
    this.#isSkipping = false
    if (isSkipped || fields.length === 0) return
    this.#isResumable ||= fields.some(({ name, value }) => name === 'id' && value !== '')
    try {
      this.#ready.push(write(checked(fields)))
    } catch {
      this.#refuse()
      this.#isSkipping = false
    }
  }

  #refuse(): void {
    this.#fields = []
    this.#isSkipping = true
    const refusal = this.#isOver ? undefined : this.#refusal()
    if (refusal === undefined) return
    this.#ready.push(write([{ name: 'data', value: JSON.stringify(refusal) }]))
    this.#isOver = true
  }
}

/** Only events without another name are messages. Throws if the message exceeds the limits. */
function checked(fields: Field[]): Field[] {
  const kind = fields.findLast(({ name }) => name === 'event')?.value ?? ''
  const lines = fields.filter(({ name }) => name === 'data')
  if (lines.length === 0 || (kind !== '' && kind !== 'message')) return fields
  const data = harmlessJson(Buffer.from(lines.map(({ value }) => value).join('\n')))
  const others = fields.filter(({ name }) => name !== 'data')
  const value = data.toString().split('\n')
  return [...others, ...value.map((line) => ({ name: 'data', value: line }))]
}

function write(fields: Field[]): Buffer {
  return Buffer.from(`${fields.map(({ name, value }) => `${name}: ${value}\n`).join('')}\n`)
}
