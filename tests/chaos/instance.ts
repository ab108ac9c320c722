/** One server process of the product; run from source where a bug is planted into it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageRoot } from '../../server/lib/files/package-root.ts'
import { eventually } from '../support/eventually.ts'
import { productArgs, productEnv } from '../support/product.ts'

const START_MS = 60_000

export class Instance {
  readonly port: number
  readonly #dir: string
  readonly #env: Record<string, string>
  readonly #bug: string | undefined
  #child: ChildProcess | undefined

  constructor(port: number, dir: string, env: Record<string, string>, bug: string | undefined) {
    this.port = port
    this.#dir = dir
    this.#env = env
    this.#bug = bug
  }

  get isUp(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Resolves when it serves; whether engine and store are there is another matter. */
  async start(): Promise<void> {
    if (this.isUp) return
    const plant = join(import.meta.dirname, 'plant-bug.ts')
    const source = ['--disable-warning=ExperimentalWarning', join(packageRoot(), 'server/main.ts')]
    const args = this.#bug ? ['--import', pathToFileURL(plant).href, ...source] : productArgs('main')
    const child = spawn(process.execPath, [...args, 'serve'], {
      cwd: this.#dir,
      env: {
        PATH: process.env.PATH,
        TMPDIR: process.env.TMPDIR,
        ...productEnv(),
        ...this.#env,
        PORT: String(this.port),
        PLANTED_BUG: this.#bug ?? ''
      },
      stdio: ['ignore', 'ignore', 'pipe']
    })
    child.stderr.pipe(createWriteStream(join(this.#dir, `server-${this.port}.log`), { flags: 'a' }))
    this.#child = child
    await eventually(
      `the server on port ${this.port} answers`,
      async () => !this.isUp || (await isThere(this.port)),
      START_MS
    )
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (!child || !this.isUp) return
    const exited = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill(signal)
    await exited
  }
}

async function isThere(port: number): Promise<boolean> {
  const options = { signal: AbortSignal.timeout(2000) }
  return (await fetch(`http://127.0.0.1:${port}/healthz`, options).catch(() => null))?.ok === true
}
