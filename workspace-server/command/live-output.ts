import { StringDecoder } from 'node:string_decoder'
import type { OutputChunk } from '../protocol.ts'

const FLUSH_MS = 50
const FLUSH_CHARS = 8192
const MAX_WAITING_CHARS = 64 * 1024
const MAX_TOTAL_CHARS = 1024 * 1024

const ENDS_HERE =
  '\n[… the live output ends here; the command goes on, and its result will have the beginning and the end …]\n'

/**
 * Sends output while a command runs. It collects pieces for a moment and sends one message at a time. What a slow reader can't
 * take, or what exceeds the total, is dropped, and the output says so; the result has the beginning and the end anyway.
 */
export class LiveOutput {
  readonly #send: (message: string) => Promise<void>
  readonly #decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  #waiting: OutputChunk[] = []
  #waitingChars = 0
  #totalChars = 0
  #droppedChars = 0
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined

  constructor(send: (message: string) => Promise<void>) {
    this.#send = send
  }

  add(stream: OutputChunk['stream'], bytes: Buffer): void {
    const text = this.#decoders[stream].write(bytes)
    if (text === '' || this.#totalChars >= MAX_TOTAL_CHARS) return
    if (this.#waitingChars >= MAX_WAITING_CHARS) {
      this.#droppedChars += text.length
      return
    }
    this.#totalChars += text.length
    if (this.#droppedChars > 0) this.#push(stream, `\n[… ${this.#droppedChars} characters are not shown here …]\n`)
    this.#droppedChars = 0
    this.#push(stream, text)
    if (this.#totalChars >= MAX_TOTAL_CHARS) this.#push(stream, ENDS_HERE)
    if (this.#waitingChars >= FLUSH_CHARS) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS)
  }

  #push(stream: OutputChunk['stream'], text: string): void {
    this.#waitingChars += text.length
    const last = this.#waiting.at(-1)
    if (last?.stream === stream && last.text.length < FLUSH_CHARS) last.text += text
    else this.#waiting.push({ stream, text })
  }

  /** Sends the rest; does not wait for a reader that is stuck. */
  end(): void {
    this.#flush()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  async #sendAll(): Promise<void> {
    for (let chunk = this.#waiting.shift(); chunk !== undefined; chunk = this.#waiting.shift()) {
      this.#waitingChars -= chunk.text.length
      try {
        await this.#send(JSON.stringify(chunk))
      } catch {
        return
      }
    }
  }
}
