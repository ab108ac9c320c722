/**
 * Runs one program: reads it and the answers to its calls from stdin, and writes its calls to stdout. Owns the thread of the realm
 * and ends it when its time or memory is used up. Invariant: one process runs one program.
 */
import { Worker } from 'node:worker_threads'
import { isRecord } from '../../server/lib/is-record.ts'
import { LineReader } from '../../server/lib/streams/line-reader.ts'
import { log } from '../log.ts'
import { CODE, CODE_LIMITS, type RealmInput, type RealmOutput, threadArguments } from './code-protocol.ts'
import type { AnswerMessage, RunMessage, ThreadOutput } from './realm-thread.ts'

const CHECK_MS = 100
/** The result of a call as JSON inside JSON. */
const MAX_LINE_BYTES = 8 * CODE_LIMITS.resultChars
const KINDS = new Set(['tool', 'search', 'describe', 'sleep'])

export function runCodeRealm(): void {
  const [, entry = ''] = process.argv
  const worker = new Worker(entry, {
    argv: [CODE.command],
    execArgv: threadArguments(process.execArgv),
    env: { TZ: 'UTC' },
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: CODE_LIMITS.memoryMb }
  })
  const realm = new RealmProcess(worker, (output) => process.stdout.write(`${JSON.stringify(output)}\n`))
  worker.on('message', (message: ThreadOutput) => realm.heard(message))
  worker.on('error', (error) => realm.broke(error))
  worker.on('exit', () => realm.broke(undefined))
  const lines = new LineReader(MAX_LINE_BYTES, {
    line: (bytes) => realm.told(JSON.parse(bytes.toString('utf8'))),
    oversize: () => log('A line of the orchestrator is too long')
  })
  process.stdin.on('data', (chunk: Buffer) => lines.push(chunk))
  process.stdin.on('end', () => process.exit(0))
}

class RealmProcess {
  readonly #worker: Worker
  readonly #write: (output: RealmOutput) => void
  #token: string | undefined
  #isOver = false

  constructor(worker: Worker, write: (output: RealmOutput) => void) {
    this.#worker = worker
    this.#write = write
  }

  told(input: RealmInput): void {
    if (!isRecord(input)) return
    if (input.type === 'run') {
      this.#token = input.token
      this.#watchTime()
      const { code, seed, now } = input
      this.#worker.postMessage({ type: 'run', code, seed, now } satisfies RunMessage)
    } else if (input.token === this.#token) {
      const { n, at, ok } = input
      const given = ok ? { code: '', text: input.value } : { code: input.code, text: input.message }
      this.#worker.postMessage({ type: 'answer', n, at, ok, ...given } satisfies AnswerMessage)
    }
  }

  heard({ type, n, kind, server, tool, text, line }: ThreadOutput): void {
    const token = this.#token
    if (type === 'ready' && token === undefined) {
      this.#write({ type: 'ready', runtime: `${CODE.version}/${process.versions.node}/${process.arch}` })
    }
    if (token === undefined || this.#isOver) return
    if (type === 'call' && isKind(kind)) this.#write({ type, token, n, kind, server, tool, args: text, line })
    else if (type === 'log' || type === 'progress') this.#write({ type, token, text })
    else if (type === 'done' && text.length > CODE_LIMITS.valueChars) this.#tooLong(text.length)
    else if (type === 'done') this.#end({ type, token, value: text })
    else if (type === 'failed') this.#fail(kind, text.slice(0, CODE_LIMITS.errorChars), line)
    else if (type === 'departed')
      this.#fail('code_departed', `The program did not make call ${n} again, although its log has it.`)
    else if (type === 'stuck') this.#fail('code_stuck', 'The program waits for a promise that nothing will settle.')
  }

  broke(error: Error | undefined): void {
    const isMemory = error !== undefined && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    if (isMemory) this.#fail('code_memory', `The program used more than ${CODE_LIMITS.memoryMb} MB of memory.`)
    else this.#fail('code_failed', 'The thread in which the program ran has ended.')
  }

  #tooLong(chars: number): void {
    const message = `The program returned ${chars} characters; the limit is ${CODE_LIMITS.valueChars}. Return less.`
    this.#fail('code_too_much', message)
  }

  #watchTime(): void {
    const { user, system } = process.cpuUsage()
    const timer = setInterval(() => {
      const used = process.cpuUsage({ user, system })
      if ((used.user + used.system) / 1000 < CODE_LIMITS.cpuMs) return
      clearInterval(timer)
      this.#fail('code_cpu', `The program used more than ${CODE_LIMITS.cpuMs / 1000} s of CPU time.`)
      void this.#worker.terminate()
    }, CHECK_MS).unref()
  }

  #fail(code: string, message: string, line = 0): void {
    this.#end({ type: 'failed', token: this.#token ?? '', code, message, line })
  }

  #end(output: RealmOutput): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#write(output)
  }
}

function isKind(kind: string): kind is 'tool' | 'search' | 'describe' | 'sleep' {
  return KINDS.has(kind)
}
