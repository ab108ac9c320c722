import type { Random } from '../chaos/random.ts'
import type { RecordedRequest, ScriptedAnswer, ScriptedReply } from '../fixtures/model-servers/model-reply.ts'
import { brokenRules, type Issued, type VendorName } from './request-rules.ts'

const WORDS = [
  'Yes.',
  'A 🧭 points',
  ' north — ',
  '“quoted”\n\n',
  '漢字 ',
  '```js\nlet a\n```\n',
  '👩‍👩‍👧 ',
  'and so on, ',
  '<b>&amp;</b> '
]
/** Each vendor's word for "the answer is too long". */
const TOO_LONG: Record<VendorName, string> = {
  anthropic: 'max_tokens',
  gemini: 'MAX_TOKENS',
  'openai responses': 'max_output_tokens',
  'openai-compatible chat': 'length'
}
const MAX_STEPS = 4
export const FILES = ['a.txt', 'b 🧭.txt', 'c.txt', 'd.txt']

/** Answers requests at random, checks each against the vendor's rules, and remembers what it has signed. */
export class VendorMind {
  readonly issued: Issued
  readonly violations: string[] = []
  requests = 0
  #era = 0
  #number = 0
  /** Answers that have begun and never end. */
  #hangs = 0
  readonly #random: Random

  constructor(random: Random) {
    this.#random = random
    this.issued = { signatures: new Map(), calls: new Map(), era: () => this.#era }
  }

  /** The conversation goes on with another model. */
  switched(): void {
    this.#era += 1
  }

  get isHanging(): boolean {
    return this.#hangs > 0
  }

  answer(vendor: VendorName, { body, closed }: RecordedRequest): ScriptedReply {
    this.requests += 1
    for (const rule of brokenRules(vendor, body, this.issued))
      this.violations.push(`${vendor} was sent ${rule}: ${JSON.stringify(body).slice(0, 20_000)}`)
    const { next } = this.#random
    const luck = next()
    if (luck < 0.05) return { status: this.#random.pick([429, 500, 529]), headers: { 'retry-after': '0' }, body: {} }
    if (luck < 0.07) return { reset: true }
    if (luck < 0.09) return { text: '' }
    if (luck < 0.16) return this.#cut(this.#said(vendor))
    if (luck < 0.24) return this.#hanging(vendor, closed)
    if (luck < 0.27) return { ...this.#said(vendor), stop: TOO_LONG[vendor] }
    const steps = JSON.stringify(body).split(/tool_result|functionResponse|function_call_output|"role":"tool"/).length
    return luck < 0.72 && steps < MAX_STEPS * 3 ? this.#calling(vendor) : this.#said(vendor)
  }

  #texts(): string[] {
    return Array.from({ length: 1 + Math.floor(this.#random.between(0, 6)) }, () => this.#random.pick(WORDS))
  }

  #base(vendor: VendorName): ScriptedAnswer {
    const number = ++this.#number
    const id = `${number}`
    if (!this.#random.chance(0.5)) return { id }
    const thinking = { text: `Thought ${number} 🤔`, signature: `signature-${number}` }
    this.issued.signatures.set(thinking.signature, { vendor, text: thinking.text })
    return { id, thinking }
  }

  #said(vendor: VendorName): ScriptedAnswer {
    return { ...this.#base(vendor), text: this.#texts(), delivery: { chunkBytes: this.#random.pick([7, 64, 4096]) } }
  }

  #cut(answer: ScriptedAnswer): ScriptedAnswer {
    const stopAfter = Math.floor(this.#random.between(50, 1500))
    return { ...answer, delivery: { stopAfter, ending: this.#random.pick(['reset', 'end'] as const) } }
  }

  #hanging(vendor: VendorName, closed: RecordedRequest['closed']): ScriptedReply {
    this.#hangs += 1
    void closed.then(() => {
      this.#hangs -= 1
    })
    if (this.#random.chance(0.2)) return { hang: this.#random.pick(['before-headers', 'after-headers'] as const) }
    const text = ['It begins 🧭 ', 'and never ', 'ends']
    return {
      ...this.#base(vendor),
      text,
      delivery: { stopAfter: this.#random.pick(['begins', 'never']), ending: 'hang' }
    }
  }

  #calling(vendor: VendorName): ScriptedAnswer {
    const base = this.#base(vendor)
    const era = this.#era
    const count = this.#random.pick([1, 1, 2, 3])
    const toolCalls = Array.from({ length: count }, (_, at) => {
      const n = ++this.#number
      // Gemini signs calls; the others sign the thought before them.
      const signature = base.thinking?.signature
      this.issued.calls.set(n, { vendor, signature, isFirst: at === 0, era })
      const name = this.#toolName()
      return { id: this.#random.pick([`call_${at}`, `call_${n}`]), name, args: this.#args(n, vendor, name) }
    })
    return { ...base, ...(this.#random.chance(0.5) && { text: this.#texts() }), toolCalls }
  }

  #toolName(): string {
    return this.#random.pick([
      ...['desk__read', 'desk__read', 'desk__write', 'desk__burn it', 'launch'],
      ...['write_file', 'write_file', 'write_file', 'write_file', 'write_file']
    ])
  }

  #args(n: number, vendor: VendorName, name: string): string {
    // Gemini's arguments are an object on the wire and can't be broken.
    if (vendor !== 'gemini' && this.#random.chance(0.05)) return `{"n":${n}, "path`
    // Few files, so that calls, people and reverts meet at the same ones. The content tells which call wrote it.
    if (name === 'write_file')
      return JSON.stringify({ n, path: this.#random.pick(FILES), content: `written by call ${n}` })
    return JSON.stringify({ n, path: `f${n} 🧭.txt`, ...(this.#random.chance(0.3) && { content: 'a\n"b" \\ 漢' }) })
  }
}
