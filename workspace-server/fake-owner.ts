/** Plays the server's owner in tests: starts the server in new folders and sends raw JSON lines, valid or not. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../tests/support/temporary-folder.ts'
import { procTable } from './process/container-processes.ts'
import type { ChangesParams, ChangesResult, RestoreParams, RestoreResult } from './protocol.ts'

const NODE = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url))
const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url))

export interface ToolAnswer {
  content: { type: string; text: string; data?: string; mimeType?: string }[]
  structuredContent: Record<string, unknown>
  isError?: boolean
}

interface Answer {
  id?: number
  method?: string
  params?: { message: string }
  result?: unknown
  error?: { code: number; message: string; data?: { code: string } }
}

/** A zombie counts as ended. */
export function isRunning(pid: number): boolean {
  return !['Z', 'X', undefined].includes(procTable.state(pid))
}

export class FakeOwner {
  readonly root: string
  readonly state: string
  readonly progress: { stream: string; text: string }[] = []
  readonly exited: Promise<number | null>
  readonly child: ChildProcess
  stderr = ''
  readonly #folder: string
  readonly #waiting = new Map<number, (answer: Answer) => void>()
  #lastId = 0

  private constructor(folder: string, epoch: number, env: NodeJS.ProcessEnv) {
    this.#folder = folder
    this.root = join(folder, 'root')
    this.state = join(folder, 'state')
    mkdirSync(this.root, { recursive: true })
    const args = [MAIN, '--epoch', String(epoch), '--root', this.root, '--state', this.state]
    const child = spawn(NODE, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...env } })
    this.child = child
    child.stdin.on('error', () => {})
    child.stderr.on('data', (text: Buffer) => {
      this.stderr += text
    })
    this.exited = new Promise((resolve) => child.on('exit', (code) => resolve(code)))
    createInterface({ input: child.stdout }).on('line', (line) => this.#receive(JSON.parse(line)))
  }

  /** Not yet initialised. With `folder` of an earlier owner, uses the same workspace with a new server. */
  static spawn(options: { epoch?: number; folder?: string; env?: NodeJS.ProcessEnv } = {}): FakeOwner {
    const folder = options.folder ?? temporaryFolder()
    return new FakeOwner(folder, options.epoch ?? 1, options.env ?? {})
  }

  static async start(options: Parameters<typeof FakeOwner.spawn>[0] = {}): Promise<FakeOwner> {
    const owner = FakeOwner.spawn(options)
    const clientInfo = { name: 'fake-owner', version: '1' }
    await owner.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
    owner.sendLine(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
    return owner
  }

  get folder(): string {
    return this.#folder
  }

  sendLine(line: string): void {
    this.child.stdin?.write(`${line}\n`)
  }

  /** Returns the id at once, for cancelling. */
  post(method: string, params: object): { id: number; answer: Promise<Answer> } {
    const id = ++this.#lastId
    const answer = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve))
    this.sendLine(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    return { id, answer }
  }

  request(method: string, params: object = {}): Promise<Answer> {
    return this.post(method, params).answer
  }

  async result<T>(method: string, params: object = {}): Promise<T> {
    const { result, error } = await this.request(method, params)
    if (error !== undefined) throw new Error(error.message)
    return result as T
  }

  /** With `progressToken`, collects live output in `progress`. */
  call(name: string, args: object, progressToken?: number): Promise<ToolAnswer> {
    return this.result('tools/call', { name, arguments: args, ...(progressToken && { _meta: { progressToken } }) })
  }

  async run(command: string): Promise<string> {
    const { structuredContent } = await this.call('execute_command', { command })
    if (structuredContent.exitCode !== 0) throw new Error(`${command}: ${structuredContent.stderr}`)
    return String(structuredContent.stdout)
  }

  changes(params: ChangesParams): Promise<ChangesResult> {
    return this.result('workspace/changes', params)
  }

  restore(entries: RestoreParams['entries']): Promise<RestoreResult> {
    return this.result('workspace/restore', { entries })
  }

  async stop(): Promise<void> {
    this.child.stdin?.end()
    await this.exited
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #receive(answer: Answer): void {
    if (answer.id !== undefined) {
      this.#waiting.get(answer.id)?.(answer)
      this.#waiting.delete(answer.id)
    } else if (answer.method === 'notifications/progress' && answer.params)
      this.progress.push(JSON.parse(answer.params.message))
  }
}
