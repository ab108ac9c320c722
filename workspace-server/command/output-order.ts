import { StringDecoder } from 'node:string_decoder'
import type { OutputChunk } from '../protocol.ts'
import type { KeptOutput } from './output-keeper.ts'

/** More turns are not kept: stdout is then followed by stderr. */
const MAX_TURNS = 1000

/** Notes how the two streams of a command took turns, so that its record can show errors where they happened. */
export class OutputOrder {
  readonly #decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }
  /** Characters of stdout at even places, of stderr at odd ones. */
  readonly #turns: number[] = [0]

  add(stream: OutputChunk['stream'], chunk: Buffer): void {
    this.#count(stream, this.#decoders[stream].write(chunk).length)
  }

  /** Falls back to stdout, then stderr, if some of the text was left out. */
  of(stdout: KeptOutput, stderr: KeptOutput): number[] {
    for (const stream of ['stdout', 'stderr'] as const) this.#count(stream, this.#decoders[stream].end().length)
    const sums = [0, 0]
    for (const [at, chars] of this.#turns.entries()) sums[at % 2] = (sums[at % 2] ?? 0) + chars
    const isWhole = sums[0] === stdout.text.length && sums[1] === stderr.text.length
    return isWhole && this.#turns.length <= MAX_TURNS ? [...this.#turns] : [stdout.text.length, stderr.text.length]
  }

  #count(stream: OutputChunk['stream'], chars: number): void {
    if (chars === 0 || this.#turns.length > MAX_TURNS) return
    if ((this.#turns.length - 1) % 2 !== (stream === 'stdout' ? 0 : 1)) this.#turns.push(0)
    this.#turns[this.#turns.length - 1] = (this.#turns.at(-1) ?? 0) + chars
  }
}
